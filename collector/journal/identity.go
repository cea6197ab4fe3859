package journal

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/rollway/rollway/internal/recordlog"
)

// idFile holds a journal's identity, as idDigits hexadecimal digits and a line
// feed.
const (
	idFile   = "ID"
	idDigits = 32
)

// ID returns what tells this journal from every other: random digits that were
// made with it and stay in its folder. Who remembers an offset remembers this
// with it. It is empty if the file cannot be read or made.
func (j *Journal) ID() string { return j.id }

// identify reads the journal's identity, and makes one where there is none that
// can be read. A journal without one works all the same.
func (j *Journal) identify() {
	id, err := j.readID()
	if errors.Is(err, fs.ErrNotExist) || err == recordlog.ErrDamaged {
		if err == recordlog.ErrDamaged {
			j.find(Finding{Kind: recordlog.Damaged, File: idFile, Detail: "made anew: the journal counts as another one"})
		}
		id, err = j.makeID()
	}
	if err != nil {
		j.find(Finding{Kind: recordlog.Damaged, File: idFile, Detail: err.Error()})
		return
	}
	j.id = id
}

func (j *Journal) readID() (string, error) {
	b, err := recordlog.ReadFile(j.fs, filepath.Join(j.dir, idFile), idDigits+2)
	if err != nil {
		return "", err
	}
	if len(b) != idDigits+1 || b[idDigits] != '\n' {
		return "", recordlog.ErrDamaged
	}
	if _, err := hex.DecodeString(string(b[:idDigits])); err != nil {
		return "", recordlog.ErrDamaged
	}
	return string(b[:idDigits]), nil
}

func (j *Journal) makeID() (string, error) {
	id := fmt.Sprintf("%016x%016x", recordlog.NewID(), recordlog.NewID())
	return id, recordlog.WriteFile(j.fs, filepath.Join(j.dir, idFile), []byte(id+"\n"))
}
