import { execFileSync } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, realpathSync } from 'node:fs'
import { delimiter, dirname, join } from 'node:path'

const DEBIAN = 'bookworm'

export function findTool(tool: string): string | null {
  const folders = [...(process.env['PATH'] ?? '').split(delimiter), '/usr/sbin', '/sbin']
  const folder = folders.find(candidate => existsSync(join(candidate, tool)))
  return folder === undefined ? null : join(folder, tool)
}

/** A small Debian with Node and npm of this machine, as the official image of Node is. Needs debootstrap and root. */
export function makeDebian(folder: string): void {
  execFileSync(findTool('debootstrap') ?? 'debootstrap', ['--variant=minbase', DEBIAN, folder], { stdio: 'ignore' })
  const node = join(folder, 'usr/local/bin/node')
  mkdirSync(dirname(node), { recursive: true })
  cpSync(realpathSync(process.execPath), node)
  const npm = dirname(dirname(realpathSync(findTool('npm') ?? '')))
  cpSync(npm, join(folder, 'usr/local/lib/node_modules/npm'), { recursive: true })
  execFileSync('ln', ['-s', '../lib/node_modules/npm/bin/npm-cli.js', join(folder, 'usr/local/bin/npm')])
}
