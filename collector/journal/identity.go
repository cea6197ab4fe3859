package journal

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/rollway/rollway/internal/disk"
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

// identify reads the journal's identity, or makes one, as the history has it. It returns
// whether there was one. A journal works without one, too. With empty, nothing in the folder
// tells how far the offsets went, unless a cursor or the ledger does.
func (j *Journal) identify(h *history, empty bool) (had bool) {
	id, err := j.readID()
	if j.id = id; err == nil && empty && len(j.otherEnds()) == 0 {
		err = fs.ErrNotExist // offsets begin anew, so they are of another journal
	}
	switch {
	case err == nil && h != nil && h.ID != "" && h.ID != id:
		j.find(Finding{Kind: recordlog.Swapped, File: historyFile, Detail: "it names the journal " + h.ID})
	case err != nil && h != nil && h.ID != "":
		j.find(Finding{Kind: recordlog.Rebuilt, File: idFile, Detail: fmt.Sprintf("from %s: %v", historyFile, err)})
		id, err = h.ID, j.writeID(h.ID)
	case errors.Is(err, fs.ErrNotExist), err == recordlog.ErrDamaged, errors.Is(err, disk.ErrNotFile):
		if !errors.Is(err, fs.ErrNotExist) {
			j.find(Finding{Kind: recordlog.Damaged, File: idFile, Detail: fmt.Sprintf("made anew: the journal counts as another one: %v", err)})
		}
		id = fmt.Sprintf("%016x%016x", recordlog.NewID(), recordlog.NewID())
		j.fresh, err = true, j.writeID(id)
	default:
		had = err == nil
	}
	if err != nil {
		j.find(Finding{Kind: recordlog.Damaged, File: idFile, Detail: err.Error()})
		id = ""
	}
	j.id = id
	return had
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

func (j *Journal) writeID(id string) error {
	return recordlog.WriteFile(j.fs, filepath.Join(j.dir, idFile), []byte(id+"\n"))
}
