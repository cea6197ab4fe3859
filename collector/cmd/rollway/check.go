package main

import (
	_ "embed"
	"errors"
	"flag"
	"fmt"

	"go.yaml.in/yaml/v3"

	"github.com/rollway/rollway/collector"
	"github.com/rollway/rollway/collector/config"
)

//go:embed rollway.example.yaml
var exampleConfig string

var checkCommand = &command{
	name:    "check",
	summary: "check a configuration file",
	args:    "-config FILE",
	most:    1,
	help: `
Reads a configuration file as serve does, and the files of tokens, certificates,
networks and secrets that it names. It prints OK and the resulting settings as a
complete file, or every error with its line, and then exits with 1. It opens no
ports.

Examples:
  rollway check -config rollway.yaml
  rollway check -example >rollway.yaml   start from the commented sample
`,
	setup: setupCheck,
}

func setupCheck(flags *flag.FlagSet) action {
	path := flags.String("config", "", "the `FILE` to check")
	example := flags.Bool("example", false, "print a commented file with all settings at their defaults")
	return func(c *call, args []string) error {
		switch {
		case *example:
			return c.show(settingsOf(exampleConfig), exampleConfig)
		case *path == "" && len(args) == 0:
			return usagef("-config FILE is missing")
		case *path == "":
			*path = args[0]
		case len(args) > 0:
			return usagef("unexpected argument %q", args[0])
		}
		cfg, err := config.Load(*path)
		if err == nil {
			err = collector.CheckFiles(cfg)
		}
		if err != nil {
			return sayConfigErrors(c, "check", err)
		}
		warnings := collector.FileWarnings(cfg)
		for _, text := range warnings {
			c.say("warning: %s", text)
		}
		text := cfg.YAML()
		return c.show(struct {
			OK       bool     `json:"ok"`
			File     string   `json:"file"`
			Warnings []string `json:"warnings"`
			Settings any      `json:"settings"`
		}{true, *path, warnings, settingsOf(text)}, fmt.Sprintf("OK %s\n\n# in force:\n%s", *path, text))
	}
}

// settingsOf returns the values in a configuration that is valid.
func settingsOf(text string) (values any) {
	_ = yaml.Unmarshal([]byte(text), &values)
	return values
}

// sayConfigErrors prints the errors of a configuration, one per line, and returns
// errSaid. It returns any other error unchanged.
func sayConfigErrors(c *call, name string, err error) error {
	var list config.Errors
	if !errors.As(err, &list) {
		return err
	}
	if c.json {
		return err // in whole
	}
	for _, e := range list {
		c.say("%v", e)
	}
	c.say("rollway %s: %s in the configuration", name, plural(len(list), "error"))
	return errSaid
}
