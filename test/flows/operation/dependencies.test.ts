import { spawnSync } from 'node:child_process'
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'

const ROOT = join(import.meta.dirname, '../../..')

function run(script: string, path = process.env['PATH'] ?? ''): { code: number | null; output: string } {
  const { status, stdout, stderr } = spawnSync(process.execPath, [join(ROOT, 'scripts', script)], {
    encoding: 'utf8',
    env: { ...process.env, PATH: path },
  })
  return { code: status, output: stdout + stderr }
}

/** @returns a `PATH` on which npm prints this text and fails */
function fakeNpm(text: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'pombal-npm-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  writeFileSync(join(folder, 'npm'), `#!/bin/sh\ncat <<'END'\n${text}\nEND\nexit 1\n`)
  chmodSync(join(folder, 'npm'), 0o755)
  return `${folder}:${process.env['PATH']}`
}

describe('npm run audit', () => {
  test('passes if no vulnerability is known', () => {
    expect(run('audit.ts', fakeNpm('{"vulnerabilities":{}}')).code).toBe(0)
  })

  test('fails on a vulnerability, and names it', () => {
    const found = '{"vulnerabilities":{"leftpad":{"name":"leftpad","severity":"high","range":"<2"}}}'
    expect(run('audit.ts', fakeNpm(found))).toEqual({ code: 1, output: 'high: leftpad <2\n' })
  })

  test.each(['{"message":"405 Method Not Allowed - POST https://registry.example/"}', 'no JSON', ''])(
    'passes with a clear message if the registry does not answer: %s',
    text => {
      const { code, output } = run('audit.ts', fakeNpm(text))
      expect([code, output]).toEqual([0, expect.stringMatching(/^Not audited: the registry did not answer/)])
      expect(output).not.toContain('registry.example')
    },
  )
})

test('npm run licenses: every licence is permissive or justified', () => {
  const { code, output } = run('licenses.ts')
  expect(code, output).toBe(0)
  expect(output).toContain('GPL-3.0 (1): libsignal')
})

describe('install scripts', () => {
  const { allowScripts } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
    allowScripts: Record<string, boolean>
  }

  test('of all dependencies in the lock file are allowed, or denied, by name', () => {
    const { packages } = JSON.parse(readFileSync(join(ROOT, 'package-lock.json'), 'utf8')) as {
      packages: Record<string, { hasInstallScript?: boolean }>
    }
    const withScripts = Object.entries(packages)
      .filter(([, { hasInstallScript }]) => hasInstallScript)
      .map(([path]) => path.split('node_modules/').at(-1) ?? '')
    expect(withScripts).toContain('node')
    expect(withScripts.filter(name => !Object.hasOwn(allowScripts, name))).toEqual([])
  })

  test('that are not named stop the installation before any of them runs', { timeout: 120_000 }, ({ skip }) => {
    const version = npm(ROOT, '--version').output.trim()
    const [major = 0, minor = 0] = version.split('.').map(Number)
    skip(major < 11 || (major === 11 && minor < 16), `npm ${version} knows no list of install scripts.`)
    const folder = mkdtempSync(join(tmpdir(), 'pombal-npm-'))
    onTestFinished(() => rmSync(folder, { recursive: true }))
    const trace = join(folder, 'it-ran')
    const write = (name: string, content: object) => {
      mkdirSync(join(folder, name))
      writeFileSync(join(folder, name, 'package.json'), JSON.stringify({ name, version: '1.0.0', ...content }))
    }
    write('sneaky', { scripts: { postinstall: `node -e "fs.writeFileSync('${trace}', '')"` } })
    write('app', { allowScripts, dependencies: { sneaky: 'file:../sneaky-1.0.0.tgz' } })
    copyFileSync(join(ROOT, '.npmrc'), join(folder, 'app/.npmrc'))
    expect(npm(folder, 'pack', './sneaky').code).toBe(0)

    const { code, output } = npm(join(folder, 'app'), 'install', '--offline')
    expect(code).not.toBe(0)
    expect(output).toContain('sneaky@1.0.0 (postinstall')
    expect(existsSync(trace)).toBe(false)
  })
})

function npm(cwd: string, ...args: string[]): { code: number | null; output: string } {
  // Without the settings of an npm that started the tests.
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^npm_/i.test(name)))
  const { status, stdout, stderr } = spawnSync('npm', args, { cwd, encoding: 'utf8', env })
  return { code: status, output: stdout + stderr }
}
