import { spawnSync } from 'node:child_process'
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'

const ROOT = join(import.meta.dirname, '../..')

function run(script: string, path = process.env['PATH'] ?? ''): { code: number | null; output: string } {
  const { status, stdout, stderr } = spawnSync(process.execPath, [join(ROOT, 'scripts', script)], {
    encoding: 'utf8',
    env: { ...process.env, PATH: path },
  })
  return { code: status, output: stdout + stderr }
}

/** A folder with an npm in it that prints this. */
function fakeNpm(text: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'pombal-npm-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  writeFileSync(join(folder, 'npm'), `#!/bin/sh\ncat <<'END'\n${text}\nEND\nexit 1\n`)
  chmodSync(join(folder, 'npm'), 0o755)
  return `${folder}:${process.env['PATH']}`
}

describe('npm run audit', () => {
  test('passes where nothing is known against any dependency', () => {
    expect(run('audit.ts', fakeNpm('{"vulnerabilities":{}}')).code).toBe(0)
  })

  test('fails on a vulnerability, and names it', () => {
    const found = '{"vulnerabilities":{"leftpad":{"name":"leftpad","severity":"high","range":"<2"}}}'
    expect(run('audit.ts', fakeNpm(found))).toEqual({ code: 1, output: 'high: leftpad <2\n' })
  })

  test.each(['{"message":"405 Method Not Allowed - POST https://registry.example/"}', 'no JSON', ''])(
    'passes with a sentence where the registry does not answer: %s',
    text => {
      const { code, output } = run('audit.ts', fakeNpm(text))
      expect([code, output]).toEqual([0, expect.stringMatching(/^Not audited: the registry does not answer/)])
      expect(output).not.toContain('registry.example')
    },
  )
})

test('npm run licenses: every licence is permissive, or argued', () => {
  const { code, output } = run('licenses.ts')
  expect(code, output).toBe(0)
  expect(output).toContain('GPL-3.0 (1): libsignal')
})
