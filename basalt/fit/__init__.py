"""Will it run? Verdicts on gangs, each with a placement that anyone can check, or with the constraint that binds."""
