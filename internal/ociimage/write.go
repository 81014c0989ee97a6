package ociimage

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
)

// The parts of the OCI image specification (v1.1) that one platform and one
// layer need.
type (
	descriptor struct {
		MediaType   string            `json:"mediaType"`
		Digest      string            `json:"digest"`
		Size        int               `json:"size"`
		Platform    *platform         `json:"platform,omitempty"`
		Annotations map[string]string `json:"annotations,omitempty"`
	}
	platform struct {
		Architecture string `json:"architecture"`
		OS           string `json:"os"`
	}
	config struct {
		platform
		Config struct {
			Env        []string
			Entrypoint []string `json:",omitempty"`
			Cmd        []string `json:",omitempty"`
		} `json:"config"`
		RootFS struct {
			Type    string   `json:"type"`
			DiffIDs []string `json:"diff_ids"`
		} `json:"rootfs"`
	}
	manifest struct {
		SchemaVersion int          `json:"schemaVersion"`
		MediaType     string       `json:"mediaType"`
		Config        descriptor   `json:"config"`
		Layers        []descriptor `json:"layers"`
	}
	index struct {
		SchemaVersion int          `json:"schemaVersion"`
		MediaType     string       `json:"mediaType"`
		Manifests     []descriptor `json:"manifests"`
	}
)

const (
	typeIndex    = "application/vnd.oci.image.index.v1+json"
	typeManifest = "application/vnd.oci.image.manifest.v1+json"
	typeConfig   = "application/vnd.oci.image.config.v1+json"
	typeLayer    = "application/vnd.oci.image.layer.v1.tar"
)

// WriteTar writes the image as an OCI layout. Equal files make an equal image.
func (i *Image) WriteTar(w io.Writer) error {
	layer, err := i.layer()
	if err != nil {
		return fmt.Errorf("image %s: %w", i.Name, err)
	}
	blobs := blobs{}
	conf := config{platform: thisPlatform()}
	conf.Config.Env = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
	conf.Config.Entrypoint, conf.Config.Cmd = i.Entrypoint, i.Cmd
	conf.RootFS.Type = "layers"
	layerAt := blobs.add(typeLayer, layer)
	conf.RootFS.DiffIDs = []string{layerAt.Digest}
	confAt, err := blobs.addJSON(typeConfig, conf)
	if err != nil {
		return err
	}
	manifestAt, err := blobs.addJSON(typeManifest, manifest{2, typeManifest, confAt, []descriptor{layerAt}})
	if err != nil {
		return err
	}
	here := thisPlatform()
	manifestAt.Platform = &here
	// containerd names an imported image by the first of these, others by the second.
	manifestAt.Annotations = map[string]string{"io.containerd.image.name": i.Name, "org.opencontainers.image.ref.name": i.Name}
	list, err := json.Marshal(index{2, typeIndex, []descriptor{manifestAt}})
	if err != nil {
		return err
	}
	tw := tar.NewWriter(w)
	blobs["oci-layout"], blobs["index.json"] = []byte(`{"imageLayoutVersion":"1.0.0"}`), list
	for _, name := range slices.Sorted(maps.Keys(blobs)) {
		if err := writeFile(tw, name, 0o644, blobs[name]); err != nil {
			return err
		}
	}
	return tw.Close()
}

func thisPlatform() platform { return platform{runtime.GOARCH, "linux"} }

// blobs are the members of the layout by name.
type blobs map[string][]byte

func (b blobs) add(mediaType string, content []byte) descriptor {
	sum := sha256.Sum256(content)
	digest := hex.EncodeToString(sum[:])
	b["blobs/sha256/"+digest] = content
	return descriptor{MediaType: mediaType, Digest: "sha256:" + digest, Size: len(content)}
}

func (b blobs) addJSON(mediaType string, v any) (descriptor, error) {
	raw, err := json.Marshal(v)
	return b.add(mediaType, raw), err
}

// layer is the tar of the image's files, sorted, parents first, without times.
func (i *Image) layer() ([]byte, error) {
	var buf bytes.Buffer
	tw := tar.NewWriter(&buf)
	made := map[string]bool{"/": true}
	for _, name := range slices.Sorted(maps.Keys(i.entries)) {
		e := i.entries[name]
		if err := mkdirs(tw, path.Dir(name), made); err != nil {
			return nil, err
		}
		var err error
		switch {
		case e.link != "":
			err = tw.WriteHeader(&tar.Header{Typeflag: tar.TypeSymlink, Name: name[1:], Linkname: e.link, Mode: 0o777})
		case e.host != "":
			err = copyFile(tw, name[1:], e.host)
		default:
			err = mkdirs(tw, name, made)
		}
		if err != nil {
			return nil, err
		}
	}
	return buf.Bytes(), tw.Close()
}

func mkdirs(tw *tar.Writer, dir string, made map[string]bool) error {
	if made[dir] {
		return nil
	}
	if err := mkdirs(tw, path.Dir(dir), made); err != nil {
		return err
	}
	made[dir] = true
	mode := int64(0o755)
	if dir == "/tmp" {
		mode = 0o1777
	}
	return tw.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: dir[1:] + "/", Mode: mode})
}

func copyFile(tw *tar.Writer, name, host string) error {
	info, err := os.Stat(host)
	if err != nil {
		return err
	}
	content, err := os.ReadFile(host)
	if err != nil {
		return err
	}
	return writeFile(tw, name, int64(info.Mode().Perm()), content)
}

func writeFile(tw *tar.Writer, name string, mode int64, content []byte) error {
	if err := tw.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: mode, Size: int64(len(content))}); err != nil {
		return err
	}
	_, err := tw.Write(content)
	return err
}

// WriteDir writes the image's files below dir, which a Dockerfile can copy.
func (i *Image) WriteDir(dir string) error {
	layer, err := i.layer()
	if err != nil {
		return fmt.Errorf("image %s: %w", i.Name, err)
	}
	tr := tar.NewReader(bytes.NewReader(layer))
	for {
		h, err := tr.Next()
		if err == io.EOF {
			return nil
		}
		if err == nil {
			err = extract(tr, h, filepath.Join(dir, h.Name))
		}
		if err != nil {
			return err
		}
	}
}

func extract(r io.Reader, h *tar.Header, path string) error {
	mode := h.FileInfo().Mode()
	switch h.Typeflag {
	case tar.TypeDir:
		if err := os.MkdirAll(path, 0o755); err != nil {
			return err
		}
	case tar.TypeSymlink:
		return os.Symlink(h.Linkname, path)
	default:
		content, err := io.ReadAll(r)
		if err != nil {
			return err
		}
		if err := os.WriteFile(path, content, mode.Perm()); err != nil {
			return err
		}
	}
	// The umask had its say before.
	return os.Chmod(path, mode)
}
