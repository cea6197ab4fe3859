package allocstudy

import (
	"bytes"
	"embed"
	"fmt"
	"go/format"
	"io/fs"
	"os"
	"path/filepath"
	"text/template"
)

// The designs are a module of their own for the oldest toolchain, which the
// bench module's go.mod would shut out.
const goMod = "module allocstudy\n\ngo 1.13\n"

//go:embed testdata/designs testdata/main.go.tmpl
var sources embed.FS

// WriteModule writes the designs and a program that calls them to dir.
func WriteModule(dir string) error {
	designs, err := fs.Sub(sources, "testdata/designs")
	if err != nil {
		return err
	}
	if err := os.CopyFS(dir, designs); err != nil {
		return fmt.Errorf("write the designs: %w", err)
	}
	program, err := mainProgram()
	if err != nil {
		return fmt.Errorf("generate the program: %w", err)
	}
	for name, text := range map[string][]byte{"go.mod": []byte(goMod), "main.go": program} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
			return fmt.Errorf("write the module of designs: %w", err)
		}
	}
	return nil
}

// mainProgram writes out every case.
func mainProgram() ([]byte, error) {
	tmpl, err := template.ParseFS(sources, "testdata/main.go.tmpl")
	if err != nil {
		return nil, err
	}
	designs, err := sources.ReadDir("testdata/designs")
	if err != nil {
		return nil, err
	}
	var data struct {
		Packages, Writers []string
		Cases             []Case
	}
	data.Cases = Cases()
	for _, d := range designs {
		data.Packages = append(data.Packages, d.Name())
		source, err := sources.ReadFile("testdata/designs/" + d.Name() + "/" + d.Name() + ".go")
		if err != nil {
			return nil, err
		}
		if bytes.Contains(source, []byte("\nvar Out io.Writer\n")) {
			data.Writers = append(data.Writers, d.Name())
		}
	}
	var b bytes.Buffer
	if err := tmpl.Execute(&b, data); err != nil {
		return nil, err
	}
	return format.Source(b.Bytes())
}

// Program is the designs built by one toolchain.
type Program struct {
	Toolchain Toolchain
	path      string
}

// Build builds the module in dir.
func Build(dir string, t Toolchain) (Program, error) {
	p := Program{Toolchain: t, path: filepath.Join(dir, "study-"+t.Name)}
	if t.Goos == "windows" {
		p.path += ".exe"
	}
	if _, err := t.run(dir, "build", "-o", p.path, "."); err != nil {
		return Program{}, fmt.Errorf("build with %s: %w", t.Name, err)
	}
	return p, nil
}
