package journal

import (
	"bytes"

	"github.com/rollway/rollway/internal/jsonwalk"
)

// maxTenant is the greatest length of a tenant's name.
const maxTenant = 1 << 10

// TenantOf returns the tenant of a canonical line: the text of attrs.tenant. It is empty if
// the line has no such text, or one longer than 1 KiB. The result may refer to line.
func TenantOf(line []byte) []byte {
	const before, after = `,"attrs":`, `{"tenant":"`
	// The collector writes it first. With no object or list before them, not even in a
	// text, these are the line's own attrs.
	if i := bytes.IndexByte(line[min(1, len(line)):], '{') + 1; i >= len(before) && string(line[i-len(before):i]) == before &&
		bytes.HasPrefix(line[i:], []byte(after)) && bytes.IndexByte(line[:i], '[') < 0 {
		value := line[i+len(after):]
		if end := bytes.IndexByte(value, '"'); end >= 0 && bytes.IndexByte(value[:end], '\\') < 0 {
			return tenantName(value[:end])
		}
	}
	if !mayHaveTenant(line) || line[0] != '{' {
		return nil
	}
	for top := jsonwalk.Members(line, 0); top.Next(); {
		if !top.Is("attrs") || top.Kind() != '{' {
			continue
		}
		for attrs := jsonwalk.Members(line, top.Value.Start); attrs.Next(); {
			if attrs.Is("tenant") && attrs.Kind() == '"' {
				text, _ := jsonwalk.Text(attrs.RawValue(), nil)
				return tenantName(text)
			}
		}
		break
	}
	return nil
}

func tenantName(b []byte) []byte {
	if len(b) > maxTenant {
		return nil
	}
	return b
}

// mayHaveTenant reports whether a line of lines may have a tenant: a letter of the key can
// be escaped.
func mayHaveTenant(lines []byte) bool {
	return bytes.Contains(lines, []byte(`"tenant":`)) || bytes.Contains(lines, []byte(`\u00`))
}
