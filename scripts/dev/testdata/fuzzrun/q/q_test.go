package q

func FuzzDoesNotBuild(f *testing.F) {}
