//go:build !unix

package disk

// A Folder is nothing here: this system has no fsync of a folder.
type Folder struct{}

// OpenFolder does nothing.
func OpenFolder(string) (Folder, error) { return Folder{}, nil }

// Sync does nothing.
func (Folder) Sync() error { return nil }

// Close does nothing.
func (Folder) Close() error { return nil }
