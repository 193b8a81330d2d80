import { readdirSync, readFileSync, readlinkSync } from 'node:fs'

/** A line of `/proc/net/tcp` with a listening socket: its local port and its inode. */
const LISTENING = /^ *\d+: [0-9A-F]+:([0-9A-F]{4}) \S+ 0A(?: +\S+){5} +(\d+)/gm

/** The IPv4 ports that the process listens on (Linux only). */
export function listeningPorts(pid: number): number[] {
  const folder = `/proc/${pid}/fd`
  const open = new Set(readdirSync(folder).map(fd => linkOf(`${folder}/${fd}`)))
  return [...readFileSync(`/proc/${pid}/net/tcp`, 'utf8').matchAll(LISTENING)]
    .filter(([, , inode]) => open.has(`socket:[${inode}]`))
    .map(([, port = '']) => Number.parseInt(port, 16))
}

/** Empty if the file was closed in the meantime. */
function linkOf(path: string): string {
  try {
    return readlinkSync(path)
  } catch {
    return ''
  }
}
