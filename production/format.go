package production

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/rollway/rollway"
	"github.com/rollway/rollway/preset"
)

// encoder returns the format that o names.
func (o Options) encoder() (rollway.Encoder, error) {
	format := rollway.Encoder(rollway.JSON{})
	err := choose(&format, "FORMAT", o.Format, map[string]rollway.Encoder{
		"json": rollway.JSON{}, "logfmt": rollway.Logfmt{}, "console": rollway.Console{}, "ecs": preset.ECS(),
		"gcp": preset.GCP(os.Getenv("GOOGLE_CLOUD_PROJECT")), "slog": preset.Slog(), "zap": preset.Zap(), "zerolog": preset.Zerolog(),
	})
	switch f := format.(type) {
	case rollway.JSON:
		err = errors.Join(err, o.forms(&f.Level, &f.Source))
		format = f
	case rollway.Logfmt:
		err = errors.Join(err, o.forms(&f.Level, &f.Source))
		format = f
	case rollway.Console:
		err = errors.Join(err, o.forms(&f.Level, &f.Source))
		format = f
	}
	return format, err
}

func (o Options) forms(level *rollway.LevelFormat, source *rollway.SourceFormat) error {
	return errors.Join(
		choose(level, "LEVEL_TEXT", o.LevelText, map[string]rollway.LevelFormat{
			"upper": rollway.LevelUpper, "lower": rollway.LevelLower, "number": rollway.LevelNumber, "syslog": rollway.LevelSyslog, "severity": rollway.LevelSeverity,
		}),
		choose(source, "SOURCE", o.Source, map[string]rollway.SourceFormat{
			"short": rollway.SourceShort, "full": rollway.SourceFull, "function": rollway.SourceFunction, "object": rollway.SourceObject,
		}))
}

// choose sets *to to what has that name, unless the name is empty.
func choose[T any](to *T, setting, name string, table map[string]T) error {
	v, ok := table[name]
	switch {
	case name == "":
		return nil
	case !ok:
		return fmt.Errorf("%q is no %s: choose one of %s", name, variables+setting, strings.Join(slices.Sorted(maps.Keys(table)), ", "))
	}
	*to = v
	return nil
}
