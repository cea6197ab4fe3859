package production

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
)

// A setting is an Options field that a variable and the file Config may set.
type setting struct {
	name  string // of the variable without ROLLWAY_; in lower case the key of the file
	field func(*Options) any
}

var settings = []setting{
	{"LEVEL", func(o *Options) any { return &o.Level }},
	{"FORMAT", func(o *Options) any { return &o.Format }},
	{"LEVEL_TEXT", func(o *Options) any { return &o.LevelText }},
	{"SOURCE", func(o *Options) any { return &o.Source }},
	{"FILE", func(o *Options) any { return &o.File }},
	{"MAX_SIZE", func(o *Options) any { return &o.MaxSize }},
	{"KEEP", func(o *Options) any { return &o.Keep }},
	{"REMOTE", func(o *Options) any { return &o.Remote }},
	{"SPILL", func(o *Options) any { return &o.Spill }},
	{"CA", func(o *Options) any { return &o.CA }},
	token,
}

// token is read from no file: others might read it there.
var token = setting{"TOKEN", func(o *Options) any { return &o.Token }}

const variables = "ROLLWAY_" // the prefix of the variables

// fill returns o with fields that are zero taken from variables, which lookup returns, and
// then from the file Config.
func (o Options) fill(lookup func(string) (string, bool)) (Options, error) {
	if o.Config == "" {
		o.Config, _ = lookup(variables + "LOG_CONFIG")
	}
	var errs []error
	for _, s := range settings {
		if text, ok := lookup(variables + s.name); ok && text != "" {
			if err := s.set(&o, fromText(text)); err != nil {
				errs = append(errs, fmt.Errorf("%s%s: %w", variables, s.name, err))
			}
		}
	}
	if o.Config != "" {
		if err := o.read(); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", o.Config, err))
		}
	}
	return o, errors.Join(errs...)
}

// read sets fields that are zero to what the file Config has.
func (o *Options) read() error {
	b, err := os.ReadFile(o.Config)
	if err != nil {
		return errors.Unwrap(err) // the caller names the file
	}
	var values map[string]json.RawMessage
	if err := json.Unmarshal(b, &values); err != nil {
		return err
	}
	var errs []error
	for _, key := range slices.Sorted(maps.Keys(values)) {
		i := slices.IndexFunc(settings, func(s setting) bool { return strings.ToLower(s.name) == key && s.name != token.name })
		if i < 0 {
			errs = append(errs, fmt.Errorf("unknown key %q: the keys are %s", key, keys()))
			continue
		}
		if err := settings[i].set(o, fromJSON(values[key])); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", key, err))
		}
	}
	return errors.Join(errs...)
}

func keys() string {
	var names []string
	for _, s := range settings {
		if s.name != token.name {
			names = append(names, strings.ToLower(s.name))
		}
	}
	return strings.Join(names, ", ")
}

// set gives the field of o, unless it has a value, the one that read stores.
func (s setting) set(o *Options, read func(field any) error) error {
	switch p := s.field(o).(type) {
	case *string:
		return setIfZero(p, read)
	case *int:
		return setIfZero(p, read)
	case *int64:
		return setIfZero(p, read)
	}
	panic("production: no such type of a setting: " + s.name)
}

func setIfZero[T comparable](p *T, read func(field any) error) error {
	var zero, v T
	if err := read(&v); err != nil {
		return err
	}
	if *p == zero {
		*p = v
	}
	return nil
}

// fromText returns a read for the value of a variable.
func fromText(text string) func(any) error {
	return func(field any) error {
		if p, ok := field.(*string); ok {
			*p = text
			return nil
		}
		if json.Unmarshal([]byte(text), field) != nil {
			return fmt.Errorf("%q is no whole number", text)
		}
		return nil
	}
}

// fromJSON returns a read for a value of the file.
func fromJSON(raw []byte) func(any) error {
	return func(field any) error {
		if json.Unmarshal(raw, field) != nil {
			kind := "a string in quotes"
			if _, ok := field.(*string); !ok {
				kind = "a whole number"
			}
			return fmt.Errorf("%s is not %s", raw, kind)
		}
		return nil
	}
}
