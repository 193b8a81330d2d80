import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { findTool, makeDebian } from '../image/debian.ts'
import { succeeds } from './docker.ts'

/** Images of Debian packages, for machines that reach no registry. */

const DEBIAN = 'pombal-test-debian'
export const SYSTEMD = 'pombal-test-systemd'
const INSTALL = 'RUN apt-get update -q && apt-get install -qy --no-install-recommends'

/** Makes a database as the official image does, in another folder of the same volume. */
const POSTGRES = `#!/bin/bash
set -e
data=/var/lib/postgresql/pombal
bin=$(echo /usr/lib/postgresql/*/bin)
if [ ! -s $data/PG_VERSION ]; then
  printf %s "$POSTGRES_PASSWORD" > /tmp/password
  chmod 644 /tmp/password
  runuser -u postgres -- $bin/initdb -D $data --auth-local=trust --auth-host=scram-sha-256 -U "$POSTGRES_USER" --encoding=UTF8 --locale=C.UTF-8 --pwfile=/tmp/password
  echo 'host all all all scram-sha-256' >> $data/pg_hba.conf
  echo "CREATE DATABASE $POSTGRES_DB" | runuser -u postgres -- $bin/postgres --single -D $data template1
fi
exec runuser -u postgres -- $bin/postgres -D $data -c listen_addresses='*'
`

const DOCKERFILES: Readonly<Record<string, string>> = {
  'caddy:2-alpine': `${INSTALL} caddy wget\nCMD ["caddy", "run", "--config", "/etc/caddy/Caddyfile"]`,
  'postgres:18-alpine': [
    `${INSTALL} postgresql`,
    `RUN echo ${Buffer.from(POSTGRES).toString('base64')} | base64 -d > /start && chmod +x /start`,
    'CMD ["/start"]',
  ].join('\n'),
  [SYSTEMD]: `${INSTALL} systemd systemd-sysv dbus\nSTOPSIGNAL SIGRTMIN+3\nCMD ["/sbin/init"]`,
}

/** Pulls the images that the commands need, or makes those that no registry has. @returns the images that were made */
export function provideImages(node: string, say: (line: string) => void): string[] {
  const wanted = [node, ...Object.keys(DOCKERFILES)]
  const missing = wanted.filter(image => !succeeds('image', 'inspect', image) && !succeeds('pull', image))
  if (missing.length === 0) return []
  if (findTool('debootstrap') === null || process.getuid?.() !== 0)
    throw new Error(`No registry has ${missing.join(', ')}. Making them needs debootstrap and root.`)
  say('Debian by debootstrap')
  makeBase()
  for (const image of missing) {
    say(`${image} of Debian packages`)
    if (image === node) execFileSync('docker', ['tag', DEBIAN, image])
    else build(image, `FROM ${DEBIAN}\n${DOCKERFILES[image]}\n`)
  }
  return [DEBIAN, ...missing]
}

function makeBase(): void {
  const folder = mkdtempSync(join(tmpdir(), 'pombal-debian-'))
  try {
    makeDebian(folder)
    const changes: string[] = []
    // npm reaches its registry through the proxy of this machine, if it has one.
    const certificates = process.env['NODE_EXTRA_CA_CERTS']
    if (certificates !== undefined) {
      const place = 'usr/local/share/pombal'
      mkdirSync(join(folder, place), { recursive: true })
      execFileSync('cp', ['-L', certificates, join(folder, place, 'ca.crt')])
      changes.push('--change', `ENV NODE_EXTRA_CA_CERTS=/${place}/ca.crt`)
    }
    const archive = `${folder}.tar`
    execFileSync('tar', ['-C', folder, '-cf', archive, '.'])
    execFileSync('docker', ['import', ...changes, archive, DEBIAN], { stdio: 'ignore' })
    rmSync(archive)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

function build(image: string, dockerfile: string): void {
  execFileSync('docker', ['build', '-q', '-t', image, '-'], { input: dockerfile, stdio: ['pipe', 'ignore', 'inherit'] })
}
