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

// isRotated reports whether rotatedName gives such a name for path.
func isRotated(path, name string) bool {
	stem, ext := split(path)
	rest, ok1 := strings.CutPrefix(name, stem)
	rest, ok2 := strings.CutSuffix(rest, ext)
	moment, inode, ok3 := strings.Cut(rest, "-")
	if !ok1 || !ok2 || !ok3 {
		return false
	}
	_, err1 := time.Parse(logfile.Stamp, moment)
	_, err2 := strconv.ParseUint(inode, 16, 64)
	return err1 == nil && err2 == nil
}

// rotated returns the paths of the files that are done, from old to new.
func rotated(path string) ([]string, error) {
	dir := filepath.Dir(path)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if e.Type().IsRegular() && isRotated(path, e.Name()) {
			names = append(names, filepath.Join(dir, e.Name()))
		}
	}
	slices.Sort(names)
	return names, nil
}
