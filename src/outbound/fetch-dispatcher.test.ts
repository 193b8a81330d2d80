import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, test } from 'vitest'
import { fetchDispatcher } from './fetch-dispatcher.ts'

test.each([
  ['that never begins', ''],
  ['that stops in the middle', 'half'],
])('an answer %s is an error', async (_, part) => {
  const server = createServer((_request, response) => void (part && response.write(part)))
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const { port } = server.address() as AddressInfo
  const options = { dispatcher: fetchDispatcher(undefined, 200) } as object
  const read = async () => (await fetch(`http://127.0.0.1:${port}`, options)).text()
  await expect(read()).rejects.toThrow()
  server.closeAllConnections()
  server.close()
})
