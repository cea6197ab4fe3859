package main

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/rollway/rollway/bench/internal/measure"
	"github.com/rollway/rollway/bench/reliability"
	"github.com/rollway/rollway/bench/stuck"
)

// faultPrograms lists the programs that fail if something of ours does not do what it
// promises, after they have saved what happened.
func faultPrograms() []program {
	return []program{{"reliability", runReliability}, {"stuck", runStuck}}
}

// canTry tells which fault cannot be tried on this machine, and notes it.
func canTry(name, lacks string, missing map[string]string) (bool, error) {
	if lacks == "" {
		return true, nil
	}
	if os.Getenv("REQUIRE") == "all" {
		return false, fmt.Errorf("REQUIRE=all, but %q needs %s", name, lacks)
	}
	fmt.Fprintf(os.Stderr, "NOT TRIED: %s needs %s\n", name, lacks)
	missing[name] = lacks
	return false, nil
}

// unexpected is an error if there are any.
func unexpected(errs []error) error {
	if len(errs) == 0 {
		return nil
	}
	return fmt.Errorf("%d tries did not end as they must:\n%w", len(errs), errors.Join(errs...))
}

// runReliability puts the writers under faults.
func runReliability(a *arguments) error {
	var s reliability.Settings
	a.IntVar(&s.Tries, "tries", 4, "tries of each fault that does not kill, with each writer")
	a.IntVar(&s.Kills, "kills", 200, "SIGKILLs of each writer at random, in a copy and in a write, each")
	a.IntVar(&s.Others, "other-kills", 50, "tries of each other way to kill")
	a.DurationVar(&s.Limit, "limit", 10*time.Second, "after which a call has hung, and a writer that brings no line to the file is dead")
	a.IntVar(&s.Jobs, "jobs", 14, "processes at the same time")
	a.Uint64Var(&s.Seed, "seed", 1, "of the first try of each fault")
	a.StringVar(&s.Dir, "dir", "", "folder for log files; default the one for temporary files")
	fault := a.String("fault", "", "only this fault, by its name in the results")
	writer := a.String("writer", "", "only this writer")
	if err := a.parse(func() bool { return min(s.Tries, s.Kills, s.Others) >= 0 && s.Limit > 0 }); err != nil {
		return err
	}
	if a.short {
		s.Tries, s.Kills, s.Others, s.Limit, s.Jobs = 1, 2, 1, 3*time.Second, 16
	}
	results := reliability.Results{Results: *measure.NewResults(reliability.Kind, 1), Missing: map[string]string{}}
	results.Disk, results.Slabs = reliability.FileSystems(s.Dir)
	for _, f := range reliability.Faults() {
		if *fault != "" && f.Name != *fault {
			continue
		}
		ok, err := canTry(f.Name, f.Missing(), results.Missing)
		if err != nil {
			return err
		}
		if ok {
			s.Faults = append(s.Faults, f)
		}
	}
	for _, w := range reliability.Writers() {
		if *writer == "" || w.Name == *writer {
			s.Writers, results.Writers = append(s.Writers, w), append(results.Writers, w.Name)
		}
	}
	if len(s.Faults) == 0 || len(s.Writers) == 0 {
		return errors.New("there is no such fault or writer, or this machine cannot try it")
	}
	var err error
	if results.Tries, err = reliability.Run(os.Stderr, s); err != nil {
		return err
	}
	return errors.Join(a.save(results, len(results.Tries)), unexpected(results.Unexpected()))
}

// runStuck puts loggers in front of stuck destinations.
func runStuck(a *arguments) error {
	var s stuck.Settings
	a.DurationVar(&s.Limit, "limit", 10*time.Second, "after which a process has hung")
	if err := a.parse(func() bool { return s.Limit > 0 }); err != nil {
		return err
	}
	var err error
	if s.Dir, err = os.MkdirTemp("", "rollway-stuck-"); err != nil {
		return err
	}
	defer os.RemoveAll(s.Dir)
	end, err := s.StopCollector(s.Dir)
	if err != nil {
		return err
	}
	defer end()
	results := stuck.Results{Results: *measure.NewResults(stuck.Kind, 1)}
	var broken []error
	for _, situation := range stuck.Situations {
		for _, w := range stuck.Writers() {
			for _, act := range stuck.Acts {
				if !w.Meets(situation, act) || a.short && act != stuck.Info && act != stuck.Fatal {
					continue
				}
				t, err := s.Try(w, situation, act)
				if err != nil {
					return fmt.Errorf("%s, %s, %s: %w", w.Name, situation, act, err)
				}
				fmt.Fprintf(os.Stderr, "%s, %s, %s: longest call %v, %d in a call, took %v\n", w.Name, situation, act, t.Longest, t.InCall, t.Took)
				results.Tries = append(results.Tries, t)
				if err := t.Unexpected(w, 500*time.Millisecond); err != nil {
					broken = append(broken, err)
				}
			}
		}
	}
	return errors.Join(a.save(results, len(results.Tries)), unexpected(broken))
}
