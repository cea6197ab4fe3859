package testkit

import (
	"flag"
	"strconv"
	"testing"
)

// RunParallel is m.Run with n tests at once of those that call t.Parallel, instead
// of one for each processor, for packages whose tests wait more than they compute.
// The flag -parallel overrides n; a run that fuzzes keeps its number of workers.
func RunParallel(m *testing.M, n int) {
	flag.Parse()
	set := false
	flag.Visit(func(f *flag.Flag) { set = set || f.Name == "test.parallel" || f.Name == "test.fuzz" })
	if !set {
		if err := flag.Set("test.parallel", strconv.Itoa(n)); err != nil {
			panic(err) // package testing has no such flag any more
		}
	}
	m.Run()
}
