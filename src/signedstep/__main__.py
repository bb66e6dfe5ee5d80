"""`python -m signedstep`: the command line where its script is not on the path."""

import sys

from signedstep.cli import main

if __name__ == "__main__":
    sys.exit(main())
