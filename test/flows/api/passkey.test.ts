import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { PasskeyStep } from '../../../src/domain/connection/passkey.ts'
import { TestPasskey } from '../../passkey.ts'
import { ApiHarness } from './harness.ts'
import { createPerson } from './people/people.ts'

const passkey = new TestPasskey()
const request = {
  challenge: 'Y2hhbGxlbmdl',
  rpId: 'whatsapp.com',
  allowCredentials: [{ id: passkey.credential.id, type: 'public-key' as const }],
  userVerification: 'required' as const,
}
const assertion = passkey.answer(request)

let api: ApiHarness
let id: string
beforeAll(async () => {
  api = await ApiHarness.start()
})
afterAll(() => api[Symbol.asyncDispose]())
beforeEach(async () => {
  id = (await api.createInstance()).id
})

/** The owner of the connection shows a step of the linking. @param validMs from now on */
async function show(step: Partial<PasskeyStep> = {}, validMs = 60_000): Promise<number> {
  await api.admin('POST', `/instances/${id}/connect`)
  const expiresAt = Date.now() + validMs
  const passkey = { stage: 'assertion' as const, request, code: null, expiresAt, ...step }
  await api.record(id, { state: 'linking', cause: 'passkey_required', reason: 'WhatsApp asks.', passkey })
  return expiresAt
}
const showCode = () => show({ stage: 'code', request: null, code: '7KQ2M9XA' })
const answer = (body: unknown = { assertion }) => api.admin('POST', `/instances/${id}/connection/passkey`, body)
const confirm = () => api.admin('POST', `/instances/${id}/connection/passkey/confirm`)

async function taken() {
  const { goalVersion } = (await api.store.connections.find(id))!
  return api.store.connections.takePasskeyAnswer(await api.lease(id), goalVersion)
}

describe('linking with a passkey', () => {
  test('the connection shows the request, and one answer reaches its owner', async () => {
    const expiresAt = await show()
    const { body } = await api.admin('GET', `/instances/${id}/connection`)
    expect(body.data).toMatchObject({
      state: 'linking',
      cause: 'passkey_required',
      passkey: { stage: 'assertion', request, code: null, expiresAt: new Date(expiresAt).toISOString() },
    })
    expect(await answer()).toMatchObject({ status: 202, body: { data: { instanceId: id } } })
    expect(await taken()).toEqual({ stage: 'assertion', assertion })
    expect(await taken()).toBeNull()
  })

  test('the answer may have every field of `credential.toJSON()`, and its owner gets those that WhatsApp knows', async () => {
    await show()
    const { userHandle, ...response } = assertion.response
    const more = { authenticatorAttachment: 'platform', clientExtensionResults: { appid: true } }
    const json = { ...assertion, ...more, response: { ...response, attestationObject: 'e30' } }
    expect((await answer({ assertion: json })).status).toBe(202)
    const known = { ...assertion, response: { ...response, userHandle: null } }
    expect(await taken()).toEqual({ stage: 'assertion', assertion: known })
  })

  test('the connection shows the code, and a confirmation reaches its owner', async () => {
    await showCode()
    const { body } = await api.admin('GET', `/instances/${id}/connection`)
    expect(body.data.passkey).toMatchObject({ stage: 'code', request: null, code: '7KQ2M9XA' })
    expect((await confirm()).status).toBe(202)
    expect(await taken()).toEqual({ stage: 'code' })
  })

  test('an operator of the instance may answer; a viewer sees no step, and may not', async () => {
    await show()
    const operator = await createPerson(api, 'operator', [id])
    const viewer = await createPerson(api, 'viewer', [id])
    const stranger = await createPerson(api, 'operator', [])
    const path = `/admin/v1/instances/${id}/connection`
    const read = async (headers: Record<string, string>) => (await api.call({ path, headers })).body.data.passkey
    expect(await read(operator.headers)).toMatchObject({ stage: 'assertion' })
    expect(await read(viewer.headers)).toBeNull()
    const post = async (headers: Record<string, string>) =>
      (await api.call({ method: 'POST', path: `${path}/passkey`, headers, body: { assertion } })).status
    expect(await post(viewer.headers)).toBe(403)
    expect(await post(stranger.headers)).toBe(404)
    expect(await post(operator.headers)).toBe(202)
  })

  test('an answer is refused if WhatsApp did not ask for it, asks for the other step, or its time is over', async () => {
    const notRequested = { status: 409, body: { error: { code: 'passkey_not_requested' } } }
    expect(await answer()).toMatchObject(notRequested)
    expect(await confirm()).toMatchObject(notRequested)
    await show()
    expect(await confirm()).toMatchObject(notRequested)
    await showCode()
    expect(await answer()).toMatchObject(notRequested)
    await show({}, 0)
    expect(await answer()).toMatchObject({ status: 409, body: { error: { code: 'passkey_expired' } } })
    await show()
    await api.admin('POST', `/instances/${id}/logout`)
    expect(await answer()).toMatchObject(notRequested)
    expect(await taken()).toBeNull()
    id = 'inst_absent'
    expect(await answer()).toMatchObject({ status: 404, body: { error: { code: 'instance_not_found' } } })
    expect(await confirm()).toMatchObject({ status: 404 })
  })

  test.each([
    ['nothing', {}],
    ['null', { assertion: null }],
    ['a text', { assertion: 'e30' }],
    ['an answer without its signature', { assertion: { ...assertion, response: { clientDataJSON: 'e30' } } }],
    ['another alphabet', { assertion: { ...assertion, rawId: 'a+b/' } }],
    ['another type', { assertion: { ...assertion, type: 'password' } }],
    ['a part that is too long', { assertion: { ...assertion, id: 'A'.repeat(2_000) } }],
  ])('an answer with %s is an invalid request', async (_, body) => {
    await show()
    expect(await answer(body)).toMatchObject({ status: 400, body: { error: { code: 'invalid_request' } } })
    expect(await taken()).toBeNull()
  })

  test('is in the audit log without the answer', async () => {
    await show()
    await answer()
    await showCode()
    await confirm()
    const { data } = (await api.admin('GET', `/audit?instanceId=${id}`)).body
    const actions = data.map(({ action }: { action: string }) => action)
    expect(actions).toEqual(expect.arrayContaining(['answerPasskey', 'confirmPasskey']))
    for (const part of Object.values(assertion.response)) if (part) expect(JSON.stringify(data)).not.toContain(part)
  })
})
