"""Prints what hypernodes.k in the working directory makes, by KCL's compiler in this process."""

import sys

import kcl_lib.api as kcl

result = kcl.API().exec_program(kcl.ExecProgramArgs(k_filename_list=["hypernodes.k"]))
sys.stdout.write(result.yaml_result)
sys.exit(result.err_message or None)
