// mkimage assembles a container image from a list (package ociimage), without a
// container engine: an archive for `kind load image-archive`, `docker load` and
// `ctr images import`, or a directory for a Dockerfile.
//
//	mkimage --list deploy/images/agent.list --tar bin/images/agent.tar
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/antrea-lite/podnet/internal/ociimage"
)

func main() {
	if err := command().Execute(); err != nil {
		fmt.Fprintln(os.Stderr, "mkimage:", err)
		os.Exit(1)
	}
}

func command() *cobra.Command {
	var list, root, tar, dir, name string
	var packages bool
	cmd := &cobra.Command{
		Use: "mkimage --list FILE (--tar FILE | --dir DIR | --packages)", Short: "Assemble a container image from a list, without a container engine",
		Args: cobra.NoArgs, SilenceUsage: true, SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			image, err := ociimage.Read(list, root)
			if err != nil {
				return err
			}
			if name != "" {
				image.Name = name
			}
			switch {
			case packages:
				for _, p := range image.Packages {
					fmt.Fprintln(cmd.OutOrStdout(), p)
				}
				return nil
			case dir != "":
				return image.WriteDir(dir)
			}
			return writeTar(image, tar)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&list, "list", "", "what is in the image, such as deploy/images/agent.list")
	flags.StringVar(&root, "root", ".", "directory that relative paths of the list count from")
	flags.StringVar(&name, "name", "", "full name of the image (default the list's)")
	flags.StringVar(&tar, "tar", "", "write the image as an OCI archive")
	flags.StringVar(&dir, "dir", "", "write the image's files below a directory")
	flags.BoolVar(&packages, "packages", false, "print the Debian packages that the files come from")
	if err := cmd.MarkFlagRequired("list"); err != nil {
		panic(err) // the flag is defined above
	}
	cmd.MarkFlagsOneRequired("tar", "dir", "packages")
	cmd.MarkFlagsMutuallyExclusive("tar", "dir", "packages")
	return cmd
}

// writeTar leaves no half archive behind: somebody would load it.
func writeTar(image *ociimage.Image, path string) (err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	if err := errors.Join(image.WriteTar(f), f.Chmod(0o644), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
