package collector

import "runtime/debug"

// Version returns the module's version and, for a build from a checkout, the commit.
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "(unknown)"
	}
	v, settings := info.Main.Version, map[string]string{}
	if v == "" {
		v = "(devel)"
	}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	if revision := settings["vcs.revision"]; revision != "" {
		v += " (" + revision[:min(12, len(revision))]
		if settings["vcs.modified"] == "true" {
			v += ", with changes"
		}
		v += ")"
	}
	return v
}
