"""`basalt completion`: what a shell offers at the next word. Scripts for bash, zsh and fish, written
from the parser of the command line.

bash and zsh share a function that any POSIX shell runs. Rules and kinds stand in the script; environments are looked
for when the shell asks.
"""

import argparse
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from basalt.commands.printing import write
from basalt.gathering.documents import KINDS
from basalt.rules import RULES

ENVIRONMENT, FILE, FOLDER, NOTHING = "<environment>", "<file>", "<folder>", "<nothing>"


class Option(NamedTuple):
    """The spellings of an option, and what it takes: words, or one of the kinds above; nothing where it is a switch."""

    names: tuple[str, ...]
    takes: tuple[str, ...]
    summary: str


class Command(NamedTuple):
    """A command by its words (sandbox up): its options, and what each of its positions takes; is_open where the last
    takes any number of words."""

    words: str
    summary: str
    options: tuple[Option, ...]
    positions: tuple[tuple[str, ...], ...]
    is_open: bool


def completion(options: argparse.Namespace) -> int:
    write(script(options.shell, commands(options.parser, sorted(RULES), KINDS)))
    return 0


def commands(parser: argparse.ArgumentParser, rules: Sequence[str], kinds: Sequence[str]) -> list[Command]:
    """Every command of the parser, the first of them the program itself."""
    known = {
        "ENV": (ENVIRONMENT, FILE), "BASE": (ENVIRONMENT, FILE), "HEAD": (ENVIRONMENT, FILE),
        "PATH": (ENVIRONMENT, FILE), "FILE": (FILE,), "DIR": (FOLDER,), "KIND": tuple(kinds),
        "RULE": (*rules, ENVIRONMENT),
    }  # fmt: skip
    return list(_commands(parser, "", "", known))


def _commands(
    parser: argparse.ArgumentParser, words: str, summary: str, known: Mapping[str, tuple[str, ...]]
) -> Iterator[Command]:
    actions = parser._actions  # noqa: SLF001 (argparse has no other way to ask)
    below = [each for each in actions if isinstance(each, argparse._SubParsersAction)]  # noqa: SLF001
    options = tuple(
        Option(tuple(each.option_strings), _taken(each, known) if each.nargs != 0 else (), each.help or "")
        for each in actions
        if each.option_strings
    )
    named = [each for each in actions if not each.option_strings and each not in below]
    positions = [tuple(name for each in below for name in each.choices)] if below else []
    positions += [_taken(each, known) for each in named]
    is_open = any(each.nargs in ("*", "+") for each in named)
    yield Command(words, summary, options, tuple(positions), is_open)
    for each in below:
        told = {choice.dest: choice.help or "" for choice in each._choices_actions}  # noqa: SLF001
        for name, child in each.choices.items():
            yield from _commands(child, f"{words} {name}".strip(), told.get(name, ""), known)


def _taken(action: argparse.Action, known: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    if action.choices is not None:
        return tuple(map(str, action.choices))
    metavar = action.metavar if isinstance(action.metavar, str) else ""
    return known.get(metavar.partition(" ")[0], (NOTHING,))


def script(shell: str, every: Sequence[Command]) -> str:
    """The script that makes the shell complete `basalt`."""
    if shell == "fish":
        return _fish(every)
    return "\n".join((*_HEAD[shell], _POSIX, *_candidates(every), _TAIL[shell]))


_POSIX = r"""
# The environments of this project, one a line: names that a terminal would obey are left out.
_basalt_environments() {
    _basalt_root=.
    if [ ! -d stacks ]; then
        _basalt_root=$PWD
        while [ -n "$_basalt_root" ] && [ ! -e "$_basalt_root/Pulumi.yaml" ]; do
            _basalt_root=${_basalt_root%/*}
        done
    fi
    find "$_basalt_root/stacks" -mindepth 1 -maxdepth 1 -type d ! -name '.*' ! -name '*[[:cntrl:]]*' 2>/dev/null |
        sed 's|.*/||'
}

# What may stand after the words given, one a line. The first argument is the word that is being written.
_basalt_candidates() {
    _basalt_current=$1
    shift
    _basalt_command=
    _basalt_takes=
    _basalt_position=0
    for _basalt_word in "$@"; do
        if [ "$_basalt_word" = = ]; then
            continue # bash splits --format=json
        fi
        if [ -n "$_basalt_takes" ]; then
            _basalt_takes=
            continue
        fi"""
_HEAD = {
    "bash": (
        "# bash completion of basalt: source it, or put it into ~/.local/share/bash-completion/completions/basalt",
    ),
    "zsh": ("#compdef basalt", "# zsh completion of basalt: put it as _basalt into a folder of $fpath, or source it"),
}
_TAIL = {
    "bash": r"""
# Takes the lines of stdin that begin with the word, as they are: nothing in a name is expanded. Readline quotes them.
_basalt_take() {
    local line
    while IFS= read -r line; do
        if [ "${line:0:${#1}}" = "$1" ]; then
            COMPREPLY+=("$line")
        fi
    done
    compopt -o filenames 2>/dev/null
}
_basalt() {
    local current="${COMP_WORDS[COMP_CWORD]}" found IFS=$'\n'
    if [ "$current" = = ]; then
        current=
    fi
    local plain="${current#[\"\']}"
    plain=${plain//\\/} # what is typed of a name that needs quotes
    COMPREPLY=()
    for found in $(_basalt_candidates "$current" "${COMP_WORDS[@]:1:COMP_CWORD-1}"); do
        case $found in
            "<environment>") _basalt_take "$plain" < <(_basalt_environments) ;;
            "<file>") _basalt_take "" < <(compgen -f -- "$current") ;;
            "<folder>") _basalt_take "" < <(compgen -d -- "$current") ;;
            "<nothing>") ;;
            *) COMPREPLY+=($(compgen -W "$found" -- "$current")) ;;
        esac
    done
}
complete -F _basalt basalt
""",
    "zsh": r"""
_basalt() {
    local found
    local -a every
    for found in ${(f)"$(_basalt_candidates "${words[CURRENT]}" "${(@)words[2,CURRENT-1]}")"}; do
        case $found in
            "<environment>") every+=(${(f)"$(_basalt_environments)"}) ;;
            "<file>") _files ;;
            "<folder>") _files -/ ;;
            "<nothing>") ;;
            *) every+=("$found") ;;
        esac
    done
    if (( ${#every} )); then
        compadd -- "${every[@]}"
    fi
}
if [ "${funcstack[1]}" = _basalt ]; then
    _basalt "$@"
else
    compdef _basalt basalt
fi
""",
}


def _candidates(every: Sequence[Command]) -> Iterator[str]:
    """The rest of the function: where the words lead, then what may follow there."""
    yield '        case "$_basalt_command:$_basalt_word" in'
    for each in every[1:]:
        parent, _, name = each.words.rpartition(" ")
        yield f'            "{parent}:{name}") _basalt_command="{each.words}" _basalt_position=0 ;;'
    for each in every:
        for option in each.options:
            if option.takes:
                patterns = " | ".join(f'"{each.words}:{name}"' for name in option.names)
                yield f'            {patterns}) _basalt_takes="{" ".join(option.takes)}" ;;'
    yield "            *:-?*) ;;"
    yield "            *) _basalt_position=$((_basalt_position + 1)) ;;"
    yield "        esac\n    done"
    yield '    if [ -n "$_basalt_takes" ]; then'
    yield '        echo "$_basalt_takes" | tr " " "\\n"\n        return\n    fi'
    yield '    case "$_basalt_current:$_basalt_command:$_basalt_position" in'
    for each in every:
        names = " ".join(name for option in each.options for name in option.names)
        yield f'        -*:"{each.words}":*) echo "{names}" ;;'
        for number, words in enumerate(each.positions):
            is_last = each.is_open and number == len(each.positions) - 1
            place = "*" if is_last and _repeats(words) else str(number)
            yield f'        *:"{each.words}":{place}) echo "{" ".join(words)}" ;;'
    yield '    esac | tr " " "\\n"\n}'


def _repeats(words: tuple[str, ...]) -> bool:
    """Whether all words of an open list are of one kind: after a rule or an environment comes something else."""
    return FILE in words


def _fish(every: Sequence[Command]) -> str:
    lines = [
        "# fish completion of basalt: put it into ~/.config/fish/completions/basalt.fish",
        "function __basalt_environments",
        "    set -l root .",
        "    if not test -d stacks",
        "        set root $PWD",
        '        while test -n "$root"; and not test -e "$root/Pulumi.yaml"',
        "            set root (string replace -r '/[^/]*$' '' -- $root)",
        "        end",
        "    end",
        "    find $root/stacks -mindepth 1 -maxdepth 1 -type d ! -name '.*' ! -name '*[[:cntrl:]]*' 2>/dev/null \\",
        "        | string replace -r '.*/' ''",
        "end",
        "complete -c basalt -f",
    ]
    for each in every:
        where = _fish_condition(each, every)
        lines.extend(_fish_position(words, where, every) for words in each.positions)
        for option in each.options:
            spelt = " ".join(f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}" for name in option.names)
            takes = f" {_fish_words(option.takes)}" if option.takes else ""
            lines.append(f"complete -c basalt -n {where} {spelt}{takes} -d {_quoted(option.summary)}")
    return "\n".join([*lines, ""])


def _fish_position(words: tuple[str, ...], where: str, every: Sequence[Command]) -> str:
    summaries = {each.words.rpartition(" ")[2]: each.summary for each in every}
    if words and all(word in summaries for word in words):
        return "\n".join(f"complete -c basalt -n {where} -a {word} -d {_quoted(summaries[word])}" for word in words)
    return f"complete -c basalt -n {where} {_fish_words(words, required=False)}".rstrip()


def _fish_condition(command: Command, every: Sequence[Command]) -> str:
    below = [each.words.rpartition(" ")[2] for each in every[1:] if each.words.rpartition(" ")[0] == command.words]
    seen = [f"__fish_seen_subcommand_from {word}" for word in command.words.split()]
    if below:
        seen.append(f"not __fish_seen_subcommand_from {' '.join(below)}")
    return _quoted("; and ".join(seen))


def _fish_words(words: tuple[str, ...], *, required: bool = True) -> str:
    shown = [each for each in words if not each.startswith("<")]
    shown += ["(__basalt_environments)"] if ENVIRONMENT in words else []
    shown += ["(__fish_complete_directories)"] if FOLDER in words else []
    files = " -F" if FILE in words else ""
    needs = ("-r" if files else "-x") if required else ""
    return f"{needs}{files}{f' -a {_quoted(chr(32).join(shown))}' if shown else ''}".strip()


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
