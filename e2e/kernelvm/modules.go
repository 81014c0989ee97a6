package main

import (
	"bytes"
	"debug/elf"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// resolveModules returns the files of the wanted modules below dir and of all
// that they need, in an order in which they can be loaded. The package holds
// no modules.dep (depmod runs at installation), so the modules say it themselves.
func resolveModules(dir string, wanted []string) ([]string, error) {
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, ".ko") {
			files[moduleName(filepath.Base(path))] = path
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	builtin, err := builtinModules(dir)
	if err != nil {
		return nil, err
	}
	var order []string
	done := map[string]bool{}
	var visit func(name string) error
	visit = func(name string) error {
		name = moduleName(name)
		if done[name] || builtin[name] {
			return nil
		}
		done[name] = true
		path, ok := files[name]
		if !ok {
			return fmt.Errorf("kernel module %s is not below %s", name, dir)
		}
		needs, err := moduleDepends(path)
		if err != nil {
			return err
		}
		for _, need := range needs {
			if err := visit(need); err != nil {
				return err
			}
		}
		order = append(order, path)
		return nil
	}
	for _, name := range wanted {
		if err := visit(name); err != nil {
			return nil, err
		}
	}
	return order, nil
}

// moduleName is the name the kernel uses: no suffix, underscores only.
func moduleName(file string) string {
	return strings.ReplaceAll(strings.TrimSuffix(file, ".ko"), "-", "_")
}

func builtinModules(dir string) (map[string]bool, error) {
	lists, err := filepath.Glob(filepath.Join(dir, "*", "modules.builtin"))
	if err != nil || len(lists) != 1 {
		return nil, fmt.Errorf("%s: want one */modules.builtin, found %v", dir, lists)
	}
	raw, err := os.ReadFile(lists[0])
	if err != nil {
		return nil, err
	}
	names := map[string]bool{}
	for line := range strings.Lines(string(raw)) {
		names[moduleName(filepath.Base(strings.TrimSpace(line)))] = true
	}
	return names, nil
}

// moduleDepends reads the depends= entry of a module's .modinfo section.
func moduleDepends(path string) ([]string, error) {
	f, err := elf.Open(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	defer f.Close()
	section := f.Section(".modinfo")
	if section == nil {
		return nil, fmt.Errorf("%s: no .modinfo section", path)
	}
	raw, err := section.Data()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	for entry := range bytes.SplitSeq(raw, []byte{0}) {
		list, ok := strings.CutPrefix(string(entry), "depends=")
		if ok && list != "" {
			return strings.Split(list, ","), nil
		}
	}
	return nil, nil
}
