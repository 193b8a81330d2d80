import { randomBytes } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { findIn } from './log-scan.ts'

const SECRET = 'whsec_dGhlIHNlY3JldCBvZiBhIHdlYmhvb2s='

describe("the scan of the services' logs", () => {
  test.each([
    ['as it is', SECRET],
    ['within a longer string', `{"url":"http://x/?key=${SECRET}&y"}`],
    ['in capitals', SECRET.toUpperCase()],
    ['in base64', Buffer.from(`${SECRET} and more`).toString('base64')],
    ['in hex', Buffer.from(SECRET).toString('hex')],
    ['as bytes', JSON.stringify([...Buffer.from(SECRET)])],
  ])('finds a secret %s', (_, log) => {
    expect(findIn(`{"level":30}\n${log}\n`, [SECRET])).toHaveLength(1)
  })

  test('finds a text that JSON writes differently', () => {
    const text = 'a line\nand "another"'
    expect(findIn(JSON.stringify({ msg: 'message.sent', text }), [text])).toHaveLength(1)
  })

  test('finds a short text only as a whole value', () => {
    expect(findIn('{"text":"hello"}', ['hello'])).toHaveLength(1)
    expect(findIn('{"msg":"hello.said"}', ['hello'])).toEqual([])
  })

  test.each([
    ['a session as libsignal prints it', 'Closing session: { privKey: <Buffer 05> }'],
    ['32 bytes in base64', `{"key":"${randomBytes(32).toString('base64')}"}`],
    ['32 bytes in hex', `{"key":"${randomBytes(32).toString('hex')}"}`],
  ])('finds %s that was not registered', (_, log) => {
    expect(findIn(log, [])).toHaveLength(1)
  })

  test('accepts IDs, addresses and times', () => {
    const line = '{"level":30,"time":1700000000000,"instanceId":"inst_0a1b2c3d4e5f","url":"http://127.0.0.1:1/hook"}'
    expect(findIn(line, [SECRET, 'hello'])).toEqual([])
  })
})
