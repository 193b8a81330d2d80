import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { FAILURE_CODES } from './message.ts'
import { REFUSALS, Refusal } from './refusal.ts'

const docs = readFileSync(new URL('../../docs/errors.md', import.meta.url), 'utf8')

test.each(Object.entries(REFUSALS))('%s has a line in the docs with its status', (code, [status]) => {
  expect(docs).toContain(`| ${status} | \`${code}\` |`)
})

test.each(FAILURE_CODES)('the failure %s has a line in the docs', code => {
  expect(docs).toContain(`| \`${code}\` |`)
})

test('a refusal has its status and a message', () => {
  const refusal = new Refusal('rate_limit_exceeded', undefined, { retryAfterSeconds: 3 })
  expect(refusal).toMatchObject({ status: 429, retryAfterSeconds: 3 })
  expect(refusal.message).toMatch(/\.$/)
})
