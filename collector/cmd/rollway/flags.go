package main

import (
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/rollway/rollway/collector/config"
	"github.com/rollway/rollway/collector/query"
)

// sizeFlag declares a flag for a number of bytes.
func sizeFlag[T ~int | ~int64](flags *flag.FlagSet, dst *T, name, usage string) {
	flags.Func(name, usage, func(text string) error {
		n, err := config.ParseSize(text)
		if err == nil && config.Size(T(n)) != n {
			err = fmt.Errorf("%q is more than this machine can address", text)
		}
		*dst = T(n)
		return err
	})
}

// timeFlag declares a flag for a time, which may be given by how long ago it was.
func timeFlag(flags *flag.FlagSet, dst *time.Time, name, usage string) {
	flags.Func(name, usage, func(text string) (err error) {
		*dst, err = query.ParseTime(text, time.Now())
		return err
	})
}

// listFlag declares a flag that may be repeated.
func listFlag(flags *flag.FlagSet, dst *[]string, name, usage string) {
	flags.Func(name, usage+"; may be repeated", func(text string) error {
		*dst = append(*dst, text)
		return nil
	})
}

// words is the value of a flag that takes one of a few words.
type words struct {
	list []string
	set  func(word string) // nil: nothing
	word string            // given last
}

// String implements flag.Value.
func (w *words) String() string { return w.word }

// Set implements flag.Value.
func (w *words) Set(text string) error {
	if !slices.Contains(w.list, text) {
		return fmt.Errorf("use %s", strings.Join(w.list, ", "))
	}
	if w.word = text; w.set != nil {
		w.set(text)
	}
	return nil
}

// wordFlag declares a flag that takes one of list.
func wordFlag(flags *flag.FlagSet, name, usage string, set func(word string), list ...string) {
	flags.Var(&words{list: list, set: set}, name, usage)
}

// choiceFlag declares a flag with a few values, by their words.
func choiceFlag[T any](flags *flag.FlagSet, dst *T, name, usage string, values map[string]T) {
	wordFlag(flags, name, usage, func(word string) { *dst = values[word] }, slices.Sorted(maps.Keys(values))...)
}

// asksJSON reports whether args have -o json: for a command line that cannot be parsed.
func asksJSON(args []string) bool {
	text := " " + strings.Join(args, " ") + " "
	return strings.Contains(text, "-o json ") || strings.Contains(text, "-o=json ")
}
