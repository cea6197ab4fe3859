package journal

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/rollway/rollway/internal/recordlog"
)

// idFile has a journal's identity, as idDigits hexadecimal digits and a line feed.
const (
	idFile   = "ID"
	idDigits = 32
)

// ID returns random digits that were made with the journal and stay in its folder: an
// offset is valid for this journal alone. They are "" if the file cannot be read or made.
func (j *Journal) ID() string { return j.id }

// identify reads the journal's identity, or makes one. A journal works without one, too.
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
