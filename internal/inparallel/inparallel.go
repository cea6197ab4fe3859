// Package inparallel is for packages whose tests wait for peers and timeouts
// more than they compute.
package inparallel

import (
	"flag"
	"strconv"
	"testing"
)

// Run is m.Run with n tests at once of those that call t.Parallel, instead of
// one for each processor, unless the flag -parallel says how many or a target is
// fuzzed, which has as many workers.
func Run(m *testing.M, n int) {
	flag.Parse()
	set := false
	flag.Visit(func(f *flag.Flag) { set = set || f.Name == "test.parallel" || f.Name == "test.fuzz" })
	if !set {
		if err := flag.Set("test.parallel", strconv.Itoa(n)); err != nil {
			panic(err) // there is no such flag any more
		}
	}
	m.Run()
}
