package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/rollway/rollway/internal/testkit"
)

// An attack is a row of the table, with what became of the test that reported it.
type attack struct {
	testkit.Attack
	Test    testID `json:"test"`
	Verdict string `json:"verdict"` // held, FAILED or not tried
}

// attackResults are the raw results of redteam; bench/tables makes the table of them.
type attackResults struct {
	Date     string   `json:"date"`
	Commit   string   `json:"commit"`
	Machine  string   `json:"machine"`
	Took     string   `json:"took"`
	Attacks  []attack `json:"attacks"`
	Failed   int      `json:"failed"`
	NotTried int      `json:"not_tried"`
}

const (
	held     = "held"
	failed   = "FAILED"
	notTried = "not tried"
)

// redteam runs the attacks on the collector, one package after the other, since some are
// timed. It prints the table and writes the raw results.
func redteam(args []string) error {
	flags := flag.NewFlagSet("redteam", flag.ExitOnError)
	out := flags.String("o", "docs/results/redteam.json", "file for the raw results")
	short := flags.Bool("short", false, "make fewer attacks, as in make test")
	if err := flags.Parse(args); err != nil {
		return err
	}
	dirs, err := modules()
	if err != nil {
		return err
	}
	runs, err := nightlyRuns(dirs, testkit.Redteam, []string{"-count=1"})
	if err != nil {
		return err
	}
	for i := range runs {
		if *short {
			runs[i].env = nil
		}
	}
	r := newReport(os.Stdout)
	if err := runTests(r, 1, runs); err != nil {
		return err
	}
	err = r.finish(requireAll())
	results, err2 := r.attackResults()
	text, err3 := json.MarshalIndent(results, "", "\t")
	if err := errors.Join(err2, err3); err != nil {
		return err
	}
	results.print()
	if results.Failed > 0 {
		err = cmp.Or(err, errors.New("attacks failed"))
	}
	return errors.Join(err, os.WriteFile(*out, append(text, '\n'), 0o644))
}

// addAttacks adds the rows that a test has reported. A test of an attack that ends without
// any has a row of its name, so that none is missing in the table.
func (r *report) addAttacks(id testID, action string, t *runningTest) {
	verdict := map[string]string{"pass": held, "fail": failed, "skip": notTried}[action]
	for _, text := range t.attacks {
		a := attack{Test: id, Verdict: verdict}
		if err := json.Unmarshal([]byte(text), &a.Attack); err != nil {
			a.Attack.Attack, a.Measured, a.Verdict = text, err.Error(), failed
		}
		r.attacks = append(r.attacks, a)
	}
	reported := func(a attack) bool { return a.Test.top() == id }
	if !strings.HasPrefix(id.Test, "TestRedteam") || id != id.top() || slices.ContainsFunc(r.attacks, reported) {
		return
	}
	a := attack{Test: id, Verdict: verdict, Attack: testkit.Attack{Attack: id.Test}}
	switch action {
	case "pass":
		a.Verdict, a.Measured = failed, "the test reports no attack"
	default:
		a.Measured = lastOf(reason(t.output.String()), 160)
	}
	r.attacks = append(r.attacks, a)
}

// attackResults returns the rows, by test, and says where and when they were measured.
func (r *report) attackResults() (*attackResults, error) {
	commit, err := output("", "git", "rev-parse", "--short=12", "HEAD")
	changed, err2 := output("", "git", "status", "--porcelain", "--", ".", ":!docs")
	if err := errors.Join(err, err2); err != nil {
		return nil, err
	}
	if changed != "" {
		commit += "+changes"
	}
	res := &attackResults{Date: r.begin.UTC().Format(time.RFC3339), Commit: commit, Machine: machine(),
		Took: time.Since(r.begin).Round(time.Second).String(), Attacks: slices.Clone(r.attacks)}
	slices.SortStableFunc(res.Attacks, func(a, b attack) int {
		return cmp.Or(cmp.Compare(a.Test.Package, b.Test.Package), cmp.Compare(a.Test.top().Test, b.Test.top().Test))
	})
	for _, a := range res.Attacks {
		switch a.Verdict {
		case failed:
			res.Failed++
		case notTried:
			res.NotTried++
		}
	}
	return res, nil
}

func (res *attackResults) print() {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "\nattack\ttimes\tpromised\tmeasured\tverdict\n")
	for _, a := range res.Attacks {
		fmt.Fprintf(w, "%s\t%d\t%s\t%s\t%s\n", a.Attack.Attack, a.Times, a.Promised, a.Measured, a.Verdict)
	}
	w.Flush()
	fmt.Printf("\n%d attacks in %s, %d failed, %d not tried\n", len(res.Attacks), res.Took, res.Failed, res.NotTried)
}
