<#
.SYNOPSIS
Plays the life of Pods on a real Windows node and says what went wrong.

.DESCRIPTION
Not run by `make test`: that plays the same scenarios under Wine, which has no
HNS, no vSwitch and no Open vSwitch driver (docs/windows.md). README.md beside
this file says what the node needs and what the output should be.

It makes Pods named podnet-e2e-* by containerd, asks antrea-lite and HNS about
them, and removes them. It stops ovs-vswitchd for a minute and restarts the agent,
so other Pods of the node lose their network for that time.

.EXAMPLE
.\node.ps1 -Image mcr.microsoft.com/windows/nanoserver:ltsc2022
#>
[CmdletBinding()]
param(
    # Image of the containers; of the node's own Windows version, with cmd.exe.
    [Parameter(Mandatory = $true)] [string] $Image,
    # antrea-lite.exe, crictl.exe and ovs-vsctl.exe, when they are not in PATH.
    [string] $AntreaLite = 'antrea-lite.exe',
    [string] $Crictl = 'crictl.exe',
    [string] $OvsVsctl = 'ovs-vsctl.exe',
    [string] $Bridge = 'br-int',
    # Names of the services.
    [string] $AgentService = 'antrea-lite',
    [string] $VswitchdService = 'ovs-vswitchd',
    # How long a Pod may take from its container's start to its flows.
    [int] $ReadySeconds = 120,
    # How long ovs-vswitchd is stopped; 0 leaves that step out.
    [int] $FrozenSeconds = 60
)

Set-StrictMode -Version 3
$ErrorActionPreference = 'Stop'
$script:failures = 0
$script:pods = @()
$work = Join-Path $env:TEMP ('podnet-e2e-' + [guid]::NewGuid().ToString('N').Substring(0, 8))

# Step runs one check and prints its outcome; the steps after it run all the same.
function Step([string] $name, [scriptblock] $body) {
    $watch = [Diagnostics.Stopwatch]::StartNew()
    try {
        $note = (& $body | Out-String).Trim()
        Write-Host ('ok    {0} ({1:n1} s){2}' -f $name, $watch.Elapsed.TotalSeconds, $(if ($note) { ': ' + $note }))
    } catch {
        $script:failures++
        Write-Host ('FAIL  {0} ({1:n1} s): {2}' -f $name, $watch.Elapsed.TotalSeconds, $_.Exception.Message)
    }
}

# Run calls a program and returns what it printed; its failure is an error.
function Run([string] $program, [string[]] $arguments) {
    # Windows PowerShell makes an error of each line on stderr under 'Stop'.
    $ErrorActionPreference = 'Continue'
    $out = & $program @arguments 2>&1 | ForEach-Object { "$_" }
    if ($LASTEXITCODE -ne 0) { throw "$program $($arguments -join ' '): exit code ${LASTEXITCODE}: $($out -join ' ')" }
    return ($out -join "`n")
}

# Eventually repeats a check until it throws no more.
function Eventually([int] $seconds, [scriptblock] $check) {
    $end = (Get-Date).AddSeconds($seconds)
    while ($true) {
        try { return (& $check) } catch {
            if ((Get-Date) -gt $end) { throw "after $seconds s: $($_.Exception.Message)" }
            Start-Sleep -Milliseconds 500
        }
    }
}

function Ports() { return @(Run $AntreaLite @('ports', '-o', 'json') | ConvertFrom-Json) }

function PortOf($pod) {
    $port = @(Ports | Where-Object { $_.containerID -eq $pod.Sandbox })
    if ($port.Count -ne 1) { throw "antrea-lite knows $($port.Count) interfaces of $($pod.Name)" }
    return $port[0]
}

# New-Pod makes a sandbox, which is when ADD runs; Start-Pod starts its container,
# which is when the vNIC appears.
function New-Pod([string] $name) {
    $sandboxFile = Join-Path $work "$name-sandbox.json"
    $containerFile = Join-Path $work "$name-container.json"
    $uid = [guid]::NewGuid().ToString()
    @{ metadata = @{ name = $name; namespace = 'default'; uid = $uid; attempt = 0 } } | ConvertTo-Json -Depth 5 | Set-Content -Encoding ascii $sandboxFile
    @{ metadata = @{ name = 'main'; attempt = 0 }; image = @{ image = $Image }; command = @('cmd.exe', '/c', 'ping -t 127.0.0.1 >NUL') } |
        ConvertTo-Json -Depth 5 | Set-Content -Encoding ascii $containerFile
    $pod = [pscustomobject]@{ Name = $name; Sandbox = (Run $Crictl @('runp', $sandboxFile)).Trim(); Container = ''
        SandboxFile = $sandboxFile; ContainerFile = $containerFile }
    $script:pods += $pod
    return $pod
}

function Start-Pod($pod) {
    $pod.Container = (Run $Crictl @('create', $pod.Sandbox, $pod.ContainerFile, $pod.SandboxFile)).Trim()
    [void](Run $Crictl @('start', $pod.Container))
}

function Remove-Pod($pod) {
    [void](Run $Crictl @('stopp', $pod.Sandbox))
    [void](Run $Crictl @('rmp', '-f', $pod.Sandbox))
    $script:pods = @($script:pods | Where-Object { $_.Sandbox -ne $pod.Sandbox })
}

function AssertReady($pod, [int] $seconds) {
    return Eventually $seconds {
        $port = PortOf $pod
        if ($port.state -ne 'ready') { throw "$($pod.Name) is $($port.state), waits for $($port.waiting)" }
        $type = (Run $OvsVsctl @('get', 'Interface', $port.host, 'type')).Trim('"')
        if ($type -ne 'internal') { throw "the type of $($port.host) in OVSDB is '$type', not internal" }
        "$($port.host) on OpenFlow port $($port.ofport)"
    }
}

function AssertPing($from, $to) {
    $address = ((PortOf $to).ips[0] -split '/')[0]
    Eventually 20 { [void](Run $Crictl @('exec', $from.Container, 'ping', '-n', '1', '-w', '2000', $address)) }
}

[void](New-Item -ItemType Directory -Path $work)
try {
    Step 'this is an administrator on a node with all services running' {
        $me = [Security.Principal.WindowsPrincipal][Security.Principal.WindowsIdentity]::GetCurrent()
        if (-not $me.IsInRole([Security.Principal.WindowsBuiltInRole]::Administrator)) { throw 'run it as an administrator' }
        foreach ($s in 'hns', 'containerd', 'ovsdb-server', $VswitchdService, $AgentService) {
            if ((Get-Service $s).Status -ne 'Running') { throw "service $s is $((Get-Service $s).Status)" }
        }
        "Windows build $([Environment]::OSVersion.Version.Build), $((Run $OvsVsctl @('--version') -split "`n")[0])"
    }
    Step 'antrea-lite check finds nothing' { [void](Run $AntreaLite @('check')) }
    Step 'no Pod of an earlier run is left' {
        $old = @(Ports | Where-Object { $_.pod -like 'default/podnet-e2e-*' })
        if ($old.Count) { throw "left: $($old.pod -join ', ')" }
    }

    $a = $null; $b = $null; $c = $null
    Step 'ADD answers before there is a vNIC' {
        $script:a = New-Pod 'podnet-e2e-a'
        $script:b = New-Pod 'podnet-e2e-b'
        $port = PortOf $script:a
        "$($port.state), waits for $($port.waiting)"
    }
    Step 'the Pods get network once their containers run' {
        Start-Pod $script:a
        Start-Pod $script:b
        AssertReady $script:a $ReadySeconds
        AssertReady $script:b $ReadySeconds
    }
    Step 'HNS has one endpoint for each, of the right name, address and MAC' {
        foreach ($p in $script:a, $script:b) {
            $port = PortOf $p
            $e = @(Get-HnsEndpoint | Where-Object { $_.Name -eq $port.host })
            if ($e.Count -ne 1) { throw "$($e.Count) endpoints are called $($port.host)" }
            $mac = $e[0].MacAddress.Replace('-', ':').ToLower()
            $ip = ($port.ips[0] -split '/')[0]
            if ($mac -ne $port.mac -or $e[0].IPAddress -ne $ip) { throw "endpoint $mac $($e[0].IPAddress), antrea-lite says $($port.mac) $ip" }
        }
    }
    Step 'the vNIC has the MTU that antrea-lite wants' {
        $port = PortOf $script:a
        $nic = @(Get-NetIPInterface -IncludeAllCompartments | Where-Object { $_.InterfaceAlias -eq "vEthernet ($($port.host))" -and $_.AddressFamily -eq 'IPv4' })
        if ($nic.Count -ne 1) { throw "$($nic.Count) interfaces are called vEthernet ($($port.host))" }
        if ($nic[0].NlMtu -ne $port.mtu) { throw "MTU $($nic[0].NlMtu), wanted $($port.mtu)" }
        "$($port.mtu)"
    }
    Step 'the Pods reach each other' {
        AssertPing $script:a $script:b
        AssertPing $script:b $script:a
    }
    Step 'the agent can be restarted' {
        Restart-Service $AgentService
        AssertReady $script:a 60
        AssertPing $script:a $script:b
    }
    if ($FrozenSeconds -gt 0) {
        Step "a Pod started while ovs-vswitchd is away for $FrozenSeconds s gets network by itself" {
            Stop-Service $VswitchdService -Force
            try {
                $script:c = New-Pod 'podnet-e2e-c'
                Start-Pod $script:c
                Start-Sleep -Seconds $FrozenSeconds
            } finally { Start-Service $VswitchdService }
            AssertReady $script:c $ReadySeconds
            if ($FrozenSeconds -ge 45) {
                $events = @(Run $AntreaLite @('events', $script:c.Sandbox, '-o', 'json') | ConvertFrom-Json)
                if (@($events | Where-Object { $_.reason -eq 'NetworkNotReady' }).Count -eq 0) { throw 'nobody was told of it (NetworkNotReady)' }
            }
            AssertPing $script:c $script:a
        }
    }
    Step 'DEL leaves nothing' {
        $names = @($script:pods | ForEach-Object { (PortOf $_).host })
        foreach ($p in @($script:pods)) { Remove-Pod $p }
        Eventually 30 {
            $left = @(Get-HnsEndpoint | Where-Object { $names -contains $_.Name } | ForEach-Object { "endpoint $($_.Name)" })
            $rows = (Run $OvsVsctl @('list-ports', $Bridge)) -split "`n"
            $left += @($names | Where-Object { $rows -contains $_ } | ForEach-Object { "port $_" })
            $left += @(Ports | Where-Object { $names -contains $_.host } | ForEach-Object { "interface $($_.host)" })
            if ($left.Count) { throw "left: $($left -join ', ')" }
        }
    }
} finally {
    foreach ($p in @($script:pods)) {
        try { Remove-Pod $p } catch { Write-Host "while removing $($p.Name): $($_.Exception.Message)" }
    }
    Remove-Item -Recurse -Force $work
}
if ($script:failures) { Write-Host "$($script:failures) steps failed"; exit 1 }
Write-Host 'all steps passed'
