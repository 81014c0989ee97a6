// Package fakehns stands in for the Windows host network service in tests on
// any machine: programs under test call the real github.com/Microsoft/hcsshim/hcn,
// whose DLLs are, under Wine, those of e2e/wine/dll, and these forward each
// call to a Server of this package.
//
//	hns := fakehns.Attach(t)             // for the calls of the test's own process
//	hns.Intercept(fakehns.Hang(ctx, "HcnDeleteEndpoint"))
//
// The Server may be in another process under Wine, or on the Linux side, too:
//
//	hns := fakehns.New()
//	addr, err := hns.Start("127.0.0.1:0")
//	defer hns.Close()
//	cmd.Env = append(cmd.Env, "FAKE_HNS_ADDR="+addr)
//
// It keeps networks, endpoints and namespaces with the conditions between them
// that a CNI plugin meets: addresses out of the subnet or taken,
// a second attachment, objects that are gone, handles that outlive their object.
// What it answers comes from Microsoft's documentation of HCN, from what hcsshim
// expects, and from logs in public bug reports. It does not show that a real
// service acts alike in each detail, and it moves no packets.
package fakehns
