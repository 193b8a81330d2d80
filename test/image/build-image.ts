import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { findTool, makeDebian } from './debian.ts'

const ROOT = join(import.meta.dirname, '../..')
const BASE = 'localhost/pombal-test-base'
const IMAGE = 'localhost/pombal-test'
const TOOLS = ['buildah', 'debootstrap', 'unshare', 'nsenter']

/** The part of an image's configuration that a container engine obeys. */
export interface ImageConfig {
  User: string
  Env: string[]
  Entrypoint: string[]
  Cmd: string[]
  WorkingDir: string
  Labels: Record<string, string>
  Healthcheck: { Test: string[] }
}

export interface BuiltImage {
  config: ImageConfig
  /** The folder of the image's files. */
  files: string
}

/** Why the image cannot be built on this machine; null if it can. */
export function whyNot(): string | null {
  if (process.platform !== 'linux') return 'it needs Linux'
  if (process.getuid?.() !== 0) return 'it needs root'
  const missing = TOOLS.filter(tool => findTool(tool) === null)
  return missing.length === 0 ? null : `not installed: ${missing.join(', ')}`
}

/** Builds the Dockerfile on a Debian made here, so that no registry of images is needed. */
export function buildImage(folder: string, say: (line: string) => void): BuiltImage {
  const buildah = (args: readonly string[]) => {
    const places = ['--root', join(folder, 'storage'), '--runroot', join(folder, 'run'), '--storage-driver', 'overlay']
    return execFileSync('buildah', [...places, ...args], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'inherit'],
    }).trim()
  }
  say('Debian by debootstrap')
  const debian = join(folder, 'debian')
  makeDebian(debian)
  const base = buildah(['from', 'scratch'])
  buildah(['add', '--quiet', base, debian, '/'])
  // npm reaches its registry through the proxy of this machine, if it has one.
  const certificates = process.env['NODE_EXTRA_CA_CERTS']
  if (certificates !== undefined) {
    buildah(['copy', '--quiet', base, certificates, '/usr/local/share/ca.crt'])
    buildah(['config', '--env', 'NODE_EXTRA_CA_CERTS=/usr/local/share/ca.crt', base])
  }
  buildah(['commit', '--quiet', base, BASE])

  say('The image by buildah')
  const options = ['--format', 'docker', '--isolation', 'chroot', '--network', 'host', '--pull-never']
  // Builds independent stages at the same time, as Docker does.
  buildah(['build', '--quiet', '--jobs', '2', ...options, '--build-arg', `BASE=${BASE}`, '--tag', IMAGE, ROOT])
  const container = buildah(['from', '--pull-never', IMAGE])
  const inspected = JSON.parse(buildah(['inspect', '--type', 'image', IMAGE]))
  return { config: inspected.Docker.config, files: buildah(['mount', container]) }
}

/** Releases the files of the image that `buildImage` mounted in `folder`. */
export function unmount(folder: string): void {
  const mounts = readFileSync('/proc/self/mounts', 'utf8').split('\n')
  const own = mounts.map(line => line.split(' ')[1] ?? '').filter(path => path.startsWith(`${folder}/`))
  for (const path of own.reverse()) execFileSync('umount', [path])
}
