"""What `pulumi preview` and `pulumi up` run: the environment of the selected stack."""

from pulumi_basalt import program

program.main()
