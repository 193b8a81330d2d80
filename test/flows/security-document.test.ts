import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'

const ROOT = join(import.meta.dirname, '../..')

test('every test that docs/security.md names is there', () => {
  const document = readFileSync(join(ROOT, 'docs/security.md'), 'utf8')
  const named = Array.from(document.matchAll(/`((?:src|test|panel)\/[^`]+\.ts)`/g), ([, path = '']) => path)
  expect(named.length).toBeGreaterThan(40)
  expect(named.filter(path => !existsSync(join(ROOT, path)))).toEqual([])
})
