package main

import (
	"errors"
	"flag"
	"fmt"

	"github.com/rollway/rollway/collector/config"
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

// listFlag declares a flag that may be repeated.
func listFlag(flags *flag.FlagSet, dst *[]string, name, usage string) {
	flags.Func(name, usage+"; may be repeated", func(text string) error {
		*dst = append(*dst, text)
		return nil
	})
}

// choiceFlag declares a flag with a few values.
func choiceFlag[T any](flags *flag.FlagSet, dst *T, name, usage string, values map[string]T) {
	flags.Func(name, usage, func(text string) error {
		v, ok := values[text]
		if !ok {
			return errors.New("unknown value")
		}
		*dst = v
		return nil
	})
}
