package logger

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"time"
)

// Check lets every library log each of its cases once and compares the line
// with the values that went in, so that no library is measured that leaves work out.
// It allows the deviations that a library has no setting for: level names in
// either case, attributes under the key attrs (package rollway), durations in
// milliseconds with a fraction (phuslu/log), the message under the key message
// (phuslu's slog handler), each library's form of a caller.
func Check() error {
	var errs []error
	check := func(libraries []Library, cases []Case) {
		for _, l := range libraries {
			for _, c := range cases {
				var line bytes.Buffer
				loop := l.Loops(&line)[c.Name]
				if loop == nil {
					if !l.Reference {
						errs = append(errs, fmt.Errorf("%s has no case %s", l.Name, c.Name))
					}
					continue
				}
				loop(1)
				if err := checkLine(c, line.Bytes()); err != nil {
					errs = append(errs, fmt.Errorf("%s, %s: %w; it wrote %q", l.Name, c.Name, err, line.Bytes()))
				}
			}
		}
	}
	check(Libraries(), Cases())
	check(SlogHandlers(), []Case{SlogCase()})
	return errors.Join(errs...)
}

func checkLine(c Case, line []byte) error {
	if c.Lines == 0 {
		if len(line) > 0 {
			return errors.New("a disabled call wrote something")
		}
		return nil
	}
	if !bytes.HasSuffix(line, []byte("\n")) || bytes.Count(line, []byte("\n")) != 1 {
		return errors.New("not one whole line")
	}
	var got map[string]any
	if err := json.Unmarshal(line, &got); err != nil {
		return err
	}
	if level, _ := got["level"].(string); !strings.EqualFold(level, "info") {
		return fmt.Errorf("level is %v", got["level"])
	}
	if text, ok := got["message"]; ok {
		got["msg"] = text
		delete(got, "message")
	}
	if got["msg"] != message {
		return fmt.Errorf("msg is %v", got["msg"])
	}
	if err := checkNow(got["time"]); err != nil {
		return err
	}
	if c.Name == caseCaller {
		return checkCaller(got)
	}
	if nested, ok := got["attrs"].(map[string]any); ok {
		delete(got, "attrs")
		for k, v := range nested {
			got[k] = v
		}
	}
	for key, want := range c.attrs {
		if err := checkValue(got[key], want); err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
	}
	if want := 3 + len(c.attrs); len(got) != want {
		return fmt.Errorf("%d keys, want %d", len(got), want)
	}
	return nil
}

func checkNow(got any) error {
	s, _ := got.(string)
	at, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		return fmt.Errorf("time: %w", err)
	}
	if ago := time.Since(at); ago < -time.Second || ago > time.Minute {
		return fmt.Errorf("time is %v ago", ago)
	}
	return nil
}

// checkCaller wants the file of a loop, with a line, under any of the keys that
// libraries use.
func checkCaller(got map[string]any) error {
	for _, key := range []string{"caller", "source"} {
		if at, ok := got[key]; ok {
			if text := fmt.Sprint(at); strings.Contains(text, ".go") && strings.ContainsAny(text, "123456789") {
				return nil
			}
		}
	}
	return errors.New("no caller")
}

func checkValue(got, want any) error {
	differ := func(want any) error { return fmt.Errorf("got %v, want %v", got, want) }
	switch want := want.(type) {
	case time.Duration:
		ns, ok := got.(float64)
		if !ok || ns != float64(want) && math.Abs(ns*1e6-float64(want)) > 1 {
			return differ(want)
		}
		return nil
	case error:
		if got != want.Error() {
			return differ(want)
		}
		return nil
	}
	encoded, err := json.Marshal(want)
	if err != nil {
		return err
	}
	var plain any
	if err := json.Unmarshal(encoded, &plain); err != nil {
		return err
	}
	if got, want := canonical(got), canonical(plain); !reflect.DeepEqual(got, want) {
		return fmt.Errorf("got %v, want %v", got, want)
	}
	return nil
}

// canonical writes every time within v in one form.
func canonical(v any) any {
	switch v := v.(type) {
	case string:
		if at, err := time.Parse(time.RFC3339Nano, v); err == nil {
			return at.UTC()
		}
	case []any:
		for i := range v {
			v[i] = canonical(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = canonical(v[k])
		}
	}
	return v
}
