package journal

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
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
	if errors.Is(err, fs.ErrNotExist) || err == errDamaged {
		if err == errDamaged {
			j.find(Finding{Kind: Damaged, File: idFile, Detail: "made anew: the journal counts as another one"})
		}
		id, err = j.makeID()
	}
	if err != nil {
		j.find(Finding{Kind: Damaged, File: idFile, Detail: err.Error()})
		return
	}
	j.id = id
}

func (j *Journal) readID() (string, error) {
	f, err := j.fs.OpenFile(filepath.Join(j.dir, idFile), os.O_RDONLY, 0)
	if err != nil {
		return "", err
	}
	defer f.Close() // only read from
	b := make([]byte, idDigits+2)
	n, err := f.ReadAt(b, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return "", err
	}
	if n != idDigits+1 || b[idDigits] != '\n' {
		return "", errDamaged
	}
	if _, err := hex.DecodeString(string(b[:idDigits])); err != nil {
		return "", errDamaged
	}
	return string(b[:idDigits]), nil
}

func (j *Journal) makeID() (string, error) {
	var random [idDigits / 2]byte
	if _, err := rand.Read(random[:]); err != nil {
		return "", fmt.Errorf("choose an identity: %w", err)
	}
	id := hex.EncodeToString(random[:])
	f, err := j.fs.OpenFile(filepath.Join(j.dir, idFile), os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o640)
	if err != nil {
		return "", err
	}
	_, err = f.WriteAt([]byte(id+"\n"), 0)
	if err == nil {
		err = f.Sync() // the folder is synced behind this; cursors are good only with it
	}
	return id, errors.Join(err, f.Close())
}
