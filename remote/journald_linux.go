package remote

import (
	"fmt"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

const hasJournald = true

// sendMemfd sends an entry that is too large for a datagram as the journal requires: in a
// sealed file in memory, whose descriptor is sent with an empty datagram.
func sendMemfd(c net.Conn, data []byte) error {
	fd, err := unix.MemfdCreate("rollway-journal-entry", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	switch {
	case err == unix.ENOSYS || err == unix.EPERM || err == unix.EACCES:
		return errnoTooLong // this process may not have one, now or later
	case err != nil:
		return fmt.Errorf("%w: create file in memory: %w", errLocal, err)
	}
	f := os.NewFile(uintptr(fd), "rollway-journal-entry")
	defer f.Close()
	if _, err := f.Write(data); err != nil {
		return fmt.Errorf("%w: write file in memory: %w", errLocal, err)
	}
	const seals = unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_WRITE | unix.F_SEAL_SEAL
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, seals); err != nil {
		return fmt.Errorf("%w: seal file in memory: %w", errLocal, err)
	}
	raw, err := c.(*net.UnixConn).SyscallConn()
	if err != nil {
		return err
	}
	var sendErr error
	err = raw.Write(func(to uintptr) (done bool) { // keeps the deadline
		for {
			sendErr = unix.Sendmsg(int(to), nil, unix.UnixRights(fd), nil, unix.MSG_NOSIGNAL)
			if sendErr != unix.EINTR {
				return sendErr != unix.EAGAIN
			}
		}
	})
	switch {
	case err != nil:
		return err
	case sendErr == unix.ETOOMANYREFS: // journald has yet to take the files sent before
		return fmt.Errorf("%w: send file in memory: %w", errLocal, sendErr)
	}
	return sendErr
}
