package segment

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rollway/rollway/internal/logfile"
)

// clockBack is by how much the clock may be set back without names that are out of
// order: the moments of the next files are those of the last one and a little more.
const clockBack = time.Hour

// split returns what comes before and behind the moment in a rotated name.
func split(path string) (stem, ext string) {
	base := filepath.Base(path)
	if ext = filepath.Ext(base); ext == base {
		ext = "" // .hidden
	}
	return strings.TrimSuffix(base, ext) + "-", ext
}

// rotatedName returns the path for the file at path once it is done.
func rotatedName(path string, now time.Time, inode uint64) string {
	stem, ext := split(path)
	b := append([]byte(stem), now.UTC().Format(logfile.Stamp)...)
	b = append(b, '-')
	b = strconv.AppendUint(b, inode, 16)
	return filepath.Join(filepath.Dir(path), string(append(b, ext...)))
}

// parseRotated returns the moment in name, and whether rotatedName gives such a
// name for path.
func parseRotated(path, name string) (moment time.Time, ok bool) {
	stem, ext := split(path)
	rest, ok1 := strings.CutPrefix(name, stem)
	rest, ok2 := strings.CutSuffix(rest, ext)
	stamp, inode, ok3 := strings.Cut(rest, "-")
	if !ok1 || !ok2 || !ok3 {
		return moment, false
	}
	moment, err1 := time.Parse(logfile.Stamp, stamp)
	_, err2 := strconv.ParseUint(inode, 16, 64)
	return moment, err1 == nil && err2 == nil
}

// rotated returns the paths of the files that are done, from old to new. Those
// whose moment is still to come are from before the clock was set back: older than
// any that were made since.
func rotated(path string) ([]string, error) {
	now := time.Now()
	dir := filepath.Dir(path)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var names, early []string
	for _, e := range entries {
		moment, ok := parseRotated(path, e.Name())
		switch name := filepath.Join(dir, e.Name()); {
		case !ok || !e.Type().IsRegular():
		case moment.Sub(now) > clockBack:
			early = append(early, name)
		default:
			names = append(names, name)
		}
	}
	slices.Sort(early)
	slices.Sort(names)
	return append(early, names...), nil
}
