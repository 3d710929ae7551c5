"""`python -m blindcast`."""

import sys

from blindcast.cli import main

if __name__ == "__main__":
    sys.exit(main())
