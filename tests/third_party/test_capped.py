from blindcast.testing import conforms


@conforms("graders", "capped")
def test_capped(check):
    check()
