"""The look of the page: light and dark by what the reader's system prefers, and on paper."""

_LIGHT = (
    "#2f6fbd #a85412 #1f7a58 #8450b0 #b0366b #5a6a00 #00727f #6f5a48 #4f57c4 #8a5f00",
    (
        "--page:#fff;--box:#f6f7f9;--line:#d5dae1;--ink:#1b2129;--dim:#56606d;--bad:#b3261e;--good:#1a7341;--mild:#8a5a00;"
        "--free:#fff;--edge:#a9b2be;--on:#fff;--link:#1f5fae"
    ),
)
_DARK = (
    "#7fb2f0 #f0a070 #6fcf9f #c79bf0 #f08fb8 #b8cc50 #5fcfdc #c8b09a #a3a9ff #e6bd5a",
    (
        "--page:#11151b;--box:#191f27;--line:#323b47;--ink:#e4e8ee;--dim:#9aa6b4;--bad:#ff8a80;--good:#6fd398;"
        "--mild:#e9b44c;--free:#11151b;--edge:#566171;--on:#11151b;--link:#8ab8f2"
    ),
)


def _colours(palette: tuple[str, str]) -> str:
    gangs = ";".join(f"--g{number}:{colour}" for number, colour in enumerate(palette[0].split()))
    return f"{palette[1]};{gangs}"


_GANGS = "".join(f".g{number}{{--gang:var(--g{number})}}" for number in range(len(_LIGHT[0].split())))

STYLE = f""":root{{color-scheme:light dark;{_colours(_LIGHT)}}}
@media (prefers-color-scheme:dark){{@media screen{{:root{{{_colours(_DARK)}}}}}}}
{_GANGS}
*{{box-sizing:border-box}}
body{{margin:0 auto;padding:1.5rem clamp(1rem,4vw,3rem) 4rem;max-width:100rem;background:var(--page);color:var(--ink);
font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",sans-serif}}
h1{{font-size:1.5rem;margin:0;overflow-wrap:anywhere}}h2{{font-size:1.1rem;margin:2.2rem 0 .6rem}}
h3{{font-size:.95rem;margin:1.2rem 0 .4rem}}p{{margin:.3rem 0}}a{{color:var(--link)}}
code,.name{{font-family:ui-monospace,"SF Mono",Menlo,Consolas,"DejaVu Sans Mono",monospace;font-size:.88em}}
code{{overflow-wrap:anywhere}}
.lead{{color:var(--dim)}}.note{{color:var(--dim);font-size:.88rem;max-width:70rem}}
.top{{display:flex;gap:.4rem .9rem;align-items:baseline;flex-wrap:wrap}}
.badge{{display:inline-block;border:1.5px solid currentColor;border-radius:99px;padding:.05rem .7rem;font-weight:600;
white-space:nowrap}}
.bad{{color:var(--bad)}}.good{{color:var(--good)}}.mild{{color:var(--mild)}}
.verdict{{border-left:5px solid currentColor;padding:.5rem .9rem;margin:1rem 0;background:var(--box);border-radius:4px}}
.verdict span{{color:var(--ink)}}
.counts{{display:flex;flex-wrap:wrap;gap:.6rem;padding:0;margin:1rem 0;list-style:none}}
.counts li{{border:1px solid var(--line);border-radius:8px;padding:.35rem .9rem;background:var(--box);color:var(--dim);
font-size:.85rem}}
.counts b{{display:block;font-size:1.25rem;color:var(--ink);line-height:1.3}}.counts b.bad{{color:var(--bad)}}
.counts b.mild{{color:var(--mild)}}
.scroll{{overflow-x:auto}}
table{{border-collapse:collapse;width:100%;font-size:.9rem}}
th{{text-align:left;color:var(--dim);font-weight:600;font-size:.8rem;white-space:nowrap}}
th,td{{padding:.35rem .8rem .35rem 0;border-bottom:1px solid var(--line);vertical-align:top}}
td{{min-width:4rem}}td small{{display:block;color:var(--dim)}}tr:target{{background:var(--box)}}
td.state{{white-space:nowrap;font-weight:600}}
.domains,.nodes{{list-style:none;margin:0;padding:0;display:flex;flex-wrap:wrap;gap:.6rem}}
.domain{{border:1px solid var(--line);border-radius:8px;padding:.5rem .6rem .6rem;background:var(--page);min-width:0;
flex:0 1 auto;break-inside:avoid}}
.domains>.domain>.domains>.domain{{background:var(--box)}}
.domains>.domain>.domains>.domain>.domains>.domain{{background:var(--page)}}
#topology>.domains>.domain{{flex:1 1 100%;break-inside:auto}}
.head{{display:flex;flex-wrap:wrap;gap:0 .6rem;align-items:baseline;margin-bottom:.45rem;font-size:.85rem}}
.tier,.facts{{color:var(--dim)}}.tier::before{{content:"["}}.tier::after{{content:"]"}}
.chips{{display:inline-flex;flex-wrap:wrap;gap:3px}}
.chip{{display:inline-block;min-width:1.45em;padding:0 .35em;border-radius:4px;background:var(--gang);color:var(--on);
font-size:.75rem;line-height:1.5;font-weight:700;text-align:center;text-decoration:none;print-color-adjust:exact}}
.unit{{display:flex;flex-direction:column;gap:2px;min-width:4.6rem;max-width:11rem;font-size:.75rem}}
.unit .name{{overflow:hidden;text-overflow:ellipsis;white-space:nowrap;font-size:.75rem}}
.unit .left{{color:var(--dim);font-size:.7rem;line-height:1.3}}.unit .chip{{align-self:flex-start}}
.closed{{opacity:.65}}.closed .free{{stroke-dasharray:2 2}}
svg{{display:block;print-color-adjust:exact}}svg rect{{fill:var(--gang)}}
svg rect.free{{fill:var(--free);stroke:var(--edge)}}
svg text{{fill:var(--on);font:700 10px system-ui,"DejaVu Sans",sans-serif;text-anchor:middle;dominant-baseline:central}}
svg.bar{{width:8rem;height:14px;border-radius:3px;border:1px solid var(--edge)}}svg.bar rect.free{{stroke:none}}
details{{margin:.8rem 0}}summary{{cursor:pointer;font-weight:600}}
@media print{{body{{padding:0;font-size:11px}}a{{color:inherit}}details::details-content{{content-visibility:visible;
block-size:auto}}.domains{{gap:.3rem}}h2{{break-after:avoid}}tr{{break-inside:avoid}}}}
"""
