package shard_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/rollway/rollway/internal/needs"
	"github.com/rollway/rollway/shard"
)

// mounted runs the test again in a mount namespace of its own, with an ext4 of
// 64 MiB at the folder that it returns there; it returns "" in the parent, which
// is done. It needs root, mkfs.ext4 and mount.
func mounted(t *testing.T) (dir string) {
	t.Helper()
	if dir := os.Getenv(childEnv); dir != "" {
		// Private, or the mount would be seen outside of the namespace.
		if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
			fmt.Println("cannot mount:", err)
			os.Exit(1)
		}
		mountDisk(t, dir)
		t.Cleanup(func() { syscall.Unmount(filepath.Join(dir, "disk"), syscall.MNT_DETACH) })
		return dir
	}
	if os.Getuid() != 0 {
		needs.Missing(t, "root, to mount a file system")
	}
	needs.Program(t, "mkfs.ext4")
	needs.Program(t, "mount")
	out, err := child(t, &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS})
	switch {
	case errors.Is(err, syscall.EPERM) || strings.Contains(out, "cannot mount"):
		needs.Missing(t, fmt.Sprintf("to mount a file system: %v %s", err, out))
	case err != nil || strings.Contains(out, "--- SKIP"):
		t.Fatalf("%v\n%s", err, out)
	}
	t.Log(out)
	return ""
}

// mountDisk mounts the ext4 in dir/image, which it makes if need be, at dir/disk.
func mountDisk(t *testing.T, dir string) {
	t.Helper()
	image, disk := filepath.Join(dir, "image"), filepath.Join(dir, "disk")
	if _, err := os.Stat(image); err != nil {
		f, err := os.Create(image)
		if err == nil {
			err = errors.Join(f.Truncate(64<<20), f.Close(), os.Mkdir(disk, 0o700))
		}
		if err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command("mkfs.ext4", "-q", "-F", image).CombinedOutput(); err != nil {
			t.Fatalf("mkfs.ext4: %v %s", err, out)
		}
	}
	if out, err := exec.Command("mount", "-o", "loop", image, disk).CombinedOutput(); err != nil {
		fmt.Printf("cannot mount: %v %s\n", err, out)
		os.Exit(1)
	}
}

// The disk fills up under the Writer: records wait, and are written when there
// is room. What is in the file meanwhile is whole lines.
func TestFullDisk(t *testing.T) {
	dir := mounted(t)
	if dir == "" {
		return
	}
	const goroutines, each = 4, 120
	for _, kind := range kinds {
		for _, policy := range []shard.SyncPolicy{shard.SyncNever, shard.SyncEach} {
			path := filepath.Join(dir, "disk", "log")
			ballast := filepath.Join(dir, "disk", "ballast")
			o := faulty("", kind)
			o.File = kind
			o.File.Sync = policy
			fillDisk(t, ballast) // first, or a reservation would be room enough
			w := openFile(t, path, o)
			write(t, w, goroutines, 0, each, 3000)
			if err := w.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
			done := make(chan struct{})
			go func() {
				write(t, w, goroutines, each, each, 20_000)
				close(done)
			}()
			eventually(t, "the disk is full", func() bool { return errors.Is(w.Stats().LastError, syscall.ENOSPC) })
			eventually(t, "whole lines", func() bool { // not within a try
				data := snapshot(t, path)
				if kind.Framed {
					return true
				}
				// Not while what there was no room for is cut off: see Mode.
				return len(data) > 0 && data[len(data)-1] == '\n' && bytes.IndexByte(data, 0) < 0
			})
			ledger(w).Check(t)
			if err := os.Remove(ballast); err != nil {
				t.Fatal(err)
			}
			<-done
			closeFile(t, w)
			ledger(w).CheckSettled(t, 2*goroutines*each, 2*goroutines*each)
			complete(t, goroutines, 2*each, path)
			if s := w.Stats(); s.File.Mode != kind.Mode || s.File.Sealed != 0 || s.Errors == 0 || s.LastError != nil {
				t.Errorf("Stats %+v", s)
			}
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// fillDisk leaves 1500 KiB on the disk, or a little less.
func fillDisk(t *testing.T, ballast string) {
	t.Helper()
	f, err := os.Create(ballast)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var st syscall.Statfs_t
	if err := errors.Join(syscall.Fstatfs(int(f.Fd()), &st)); err != nil {
		t.Fatal(err)
	}
	free := int64(st.Bavail)*st.Bsize - 1500<<10
	if err := syscall.Fallocate(int(f.Fd()), 0, 0, free); err != nil {
		t.Fatalf("allocate %d bytes: %v", free, err)
	}
}

// The power fails under the first disk, while lines come and go on to the
// failover: with SyncEach, what counts as written is there when it is back. The
// lines go back to the first disk by Reopen.
func TestFailoverAtAPowerCut(t *testing.T) {
	dir := mounted(t)
	if dir == "" {
		return
	}
	const goroutines, each = 4, 60
	disk, second := filepath.Join(dir, "disk"), filepath.Join(dir, "second")
	if err := os.Mkdir(second, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, kind := range kinds {
		path := filepath.Join(disk, nameOf(kind))
		var heard told
		o := faulty(dir, kind)
		o.OnError = heard.add
		w := openFile(t, path, o)
		write(t, w, goroutines, 0, each, 3000)
		if err := w.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		done := make(chan struct{})
		go func() {
			write(t, w, goroutines, each, each, 20_000)
			close(done)
		}()
		eventually(t, "more records", func() bool { return w.Stats().Written > goroutines*each+20 })
		powerCut(t, disk)
		<-done
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		if err := w.Flush(ctx); err != nil {
			t.Errorf("%v: Flush = %v", nameOf(kind), err)
		}
		cancel()
		if s := w.Stats(); s.File.Failovers != 1 || s.File.Path != filepath.Join(second, nameOf(kind)) || s.Written != 2*goroutines*each {
			t.Errorf("%v: Stats %+v", nameOf(kind), s)
		}
		if err := syscall.Unmount(disk, syscall.MNT_DETACH); err != nil {
			t.Fatal(err)
		}
		mountDisk(t, dir)
		if err := w.Reopen(); err != nil {
			t.Errorf("%v: Reopen = %v", nameOf(kind), err)
		}
		write(t, w, goroutines, 2*each, each, 3000)
		closeFile(t, w)
		if s := w.Stats().File.Path; s != path {
			t.Errorf("%v: at the end the lines went to %s", nameOf(kind), s)
		}
		// What was being forced out as the power failed may be there twice.
		atLeastOnce(t, goroutines, 3*each, strings.Contains(heard.String(), "are written again elsewhere"), append(seriesOf(t, path), seriesOf(t, filepath.Join(second, nameOf(kind)))...)...)
		ledger(w).CheckSettled(t, 3*goroutines*each, 3*goroutines*each)
		if s := heard.String(); !strings.Contains(s, "the lines go to the failover") {
			t.Errorf("OnError got %s", s)
		}
	}
}

// powerCut makes the ext4 at dir forget what it has not on the disk, and fail
// from then on.
func powerCut(t *testing.T, dir string) {
	t.Helper()
	f, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	const shutdown, noLogFlush = 0x8004587D, 2 // EXT4_IOC_SHUTDOWN, EXT4_GOING_FLAGS_NOLOGFLUSH
	flags := uint32(noLogFlush)
	if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, f.Fd(), shutdown, uintptr(unsafe.Pointer(&flags))); errno != 0 {
		t.Fatalf("shut the file system down: %v", errno)
	}
}
