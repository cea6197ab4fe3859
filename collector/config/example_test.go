package config_test

import (
	"fmt"

	"github.com/rollway/rollway/collector/config"
)

func ExampleParse() {
	_, err := config.Parse("rollway.yaml", []byte("listen: \"127.0.0.1:4318\"\nlimits:\n  max_bdy: 1MiB\n  max_depth: many\n"))
	fmt.Println(err)
	// Output:
	// rollway.yaml:3:3: unknown key limits.max_bdy; did you mean limits.max_body?
	// rollway.yaml:4:14: limits.max_depth: a whole number is wanted; this is the text "many"
}
