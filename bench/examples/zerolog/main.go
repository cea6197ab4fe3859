// Command zerolog keeps zerolog as it is and gives it a slab.Writer: lines
// reach the destination in batches, from one goroutine, in order and counted.
package main

import (
	"fmt"
	"os"

	"github.com/rollway/rollway/slab"
	"github.com/rs/zerolog"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	lines, err := slab.New(os.Stdout, slab.Options{})
	if err != nil {
		return err
	}
	log := zerolog.New(lines).With().Timestamp().Logger()

	log.Info().Str("customer", "cus_123").Int("retry", 2).Msg("charged")
	log.Warn().Int("month", 12).Msg("card expires soon")

	return lines.Close()
}
