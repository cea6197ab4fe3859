package p

import "testing"

func FuzzGood(f *testing.F) {
	f.Add(1)
	f.Add(2)
	f.Fuzz(func(t *testing.T, n int) {})
}

func FuzzEmpty(f *testing.F) { f.Fuzz(func(t *testing.T, n int) {}) }

func FuzzBadSeed(f *testing.F) {
	f.Add(7)
	f.Fuzz(func(t *testing.T, n int) { t.Error("never good") })
}

func FuzzFinds(f *testing.F) {
	f.Add(7)
	f.Fuzz(func(t *testing.T, n int) {
		if n != 7 {
			t.Error("another number")
		}
	})
}
