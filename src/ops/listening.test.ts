import { createServer } from 'node:net'
import { expect, test } from 'vitest'
import { explainListening, findListeningProblem } from './listening.ts'

const ADDRESS = { host: '127.0.0.1', port: 443, setting: 'PORT' } as const

test.each([
  { error: { syscall: 'listen', code: 'EADDRINUSE' }, sentence: 'Port 443 of 127.0.0.1 is in use: set PORT' },
  { error: { syscall: 'listen', code: 'EACCES' }, sentence: 'may not listen on port 443: set PORT to 1024' },
  { error: { syscall: 'listen', code: 'EADDRNOTAVAIL' }, sentence: '127.0.0.1 is not an address of this machine' },
  { error: { syscall: 'open', code: 'EACCES' }, sentence: null },
  { error: { syscall: 'getaddrinfo', hostname: 'database.example' }, sentence: null },
])('$error is explained with its setting, or not at all', ({ error, sentence }) => {
  const explained = explainListening(error, ADDRESS)
  if (sentence === null) expect(explained).toBeNull()
  else expect(explained).toContain(sentence)
})

test('a port that is in use is no problem, because the service itself may use it', async () => {
  const server = createServer()
  const port = await new Promise<number>(resolve => {
    server.listen(0, '127.0.0.1', () => resolve((server.address() as { port: number }).port))
  })
  expect(await findListeningProblem({ ...ADDRESS, port })).toBeNull()
  expect(await findListeningProblem({ ...ADDRESS, host: 'nowhere.invalid', port })).toContain('set HOST')
  server.close()
})
