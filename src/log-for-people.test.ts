import { expect, test } from 'vitest'
import { logForPeople } from './log-for-people.ts'

const line = (fields: object) => logForPeople()(`${JSON.stringify({ time: 0, pid: 1, hostname: 'h', ...fields })}\n`)

test('a line has the time, the level, the event and its fields', () => {
  expect(line({ level: 40, msg: 'leases.expired', instances: 3 })).toMatch(
    /^\[\d\d:\d\d:\d\d\.\d{3}\] WARN: leases\.expired \{"instances":3\}\n$/,
  )
})

test('an error keeps its stack, and nothing in it commands the terminal', () => {
  const err = { type: 'Error', message: 'a\u001b[2Jb', stack: 'Error: a\u001b[2Jb\r\u009b1m\n    at here' }
  const written = line({ level: 50, msg: 'app.close_failed', err })
  expect(written).toContain('at here')
  expect(written).not.toMatch(/[^\n\u0020-\u007e]/)
})
