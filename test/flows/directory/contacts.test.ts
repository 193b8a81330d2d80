import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { StoreKind } from '../../databases/database.ts'
import { ONE_STORE } from '../../databases/one-store.ts'
import { LinkedHarness } from '../../linked-harness.ts'
import { noteBody } from '../../logs/log-capture.ts'
import { until } from '../../until.ts'

const ANA = '5511987670001'
const CARLA = '5511987670002'

/** A trigger that fails every commit that records a new contact. */
const REFUSE_CONTACTS: Record<StoreKind, string> = {
  sqlite: "create trigger refuse_contacts before insert on contacts begin select raise(abort, 'not now'); end",
  postgres: `create function refuse_contacts() returns trigger language plpgsql as $$ begin raise exception 'not now'; end $$;
    create trigger refuse_contacts before insert on contacts for each row execute function refuse_contacts()`,
}
const ALLOW_CONTACTS: Record<StoreKind, string> = {
  sqlite: 'drop trigger refuse_contacts',
  postgres: 'drop trigger refuse_contacts on contacts',
}

describe.each(ONE_STORE)('contacts, on %s', store => {
  let harness: LinkedHarness
  beforeAll(async () => {
    harness = await LinkedHarness.open(store)
  })
  afterAll(async () => harness?.[Symbol.asyncDispose]())

  test('contacts and chats of the phone are taken over when it is linked, and its old messages cause no events', async () => {
    const { service, network, receiver } = harness
    const { id, token } = await service.admin.createInstance('whatsapp')
    const link = async () => {
      await service.admin.connect(id)
      const { phone } = await network.scanQr(await harness.showQr(id), 'phone-with-history')
      await service.admin.untilState(id, 'connected')
      return phone
    }
    const phone = await link()
    await service.instance(id, token).setWebhook(receiver.url)
    await network.writeAs({ from: ANA, to: phone, text: 'antes-de-ligar-outra-vez', name: 'Ana Conceição' })
    await until('the message', () => receiver.requests.length > 0 && receiver.requests)
    await service.admin.logout(id)
    await service.admin.untilState(id, 'logged_out')
    const list = async (path: string) => {
      const response = await fetch(`${service.url}/v1${path}`, {
        headers: { authorization: `Bearer ${token}` },
      })
      // biome-ignore lint/suspicious/noExplicitAny: tests compare parts of it
      const { data } = (await response.json()) as any
      noteBody(data)
      return data
    }
    await until('the contacts to be erased', async () => (await list('/contacts')).length === 0)
    await link()
    const [contact] = await until('her name', async () => {
      const found = await list('/contacts?search=conceicao')
      return found.length > 0 && found
    })
    expect(contact).toMatchObject({ chat: ANA, phone: ANA, pushName: 'Ana Conceição' })
    const [chat] = await until('her chat', async () => {
      const found = await list('/chats')
      return found.length > 0 && found
    })
    expect(chat).toMatchObject({ chat: ANA, phone: ANA })
    // Live messages come later, so the history would have caused its event by now.
    await network.writeAs({ from: ANA, to: phone, text: 'depois-de-ligar-outra-vez', name: 'Ana Conceição' })
    await until('the second message', () => receiver.requests.length > 1)
    expect(receiver.requests).toHaveLength(2)
  })

  test('a contact that the phone saves or renames while the number is connected has that name', async () => {
    const { service, network } = harness
    const { id, phone, instance } = await harness.link()
    const nameOf = async (number: string) => {
      const response = await fetch(`${service.url}/v1/contacts?search=${number}`, {
        headers: { authorization: `Bearer ${instance.token}` },
      })
      const { data } = (await response.json()) as { data: { name: string | null }[] }
      return data[0]?.name
    }
    for (const name of ['Carla Nunes', 'Carla Nunes Rocha']) {
      await network.saveContacts(phone, [{ number: CARLA, name }])
      await until(name, async () => (await nameOf(CARLA)) === name)
      await harness.kill()
      await service.admin.untilState(id, 'connected')
      expect(await nameOf(CARLA)).toBe(name)
    }
  })

  test('a kill between the new version of the address book and the names in it loses none of them', async () => {
    const { service, network, database } = harness
    const { id, phone, instance } = await harness.link()
    const search = async (name: string) => {
      const response = await fetch(`${service.url}/v1/contacts?search=${name}`, {
        headers: { authorization: `Bearer ${instance.token}` },
      })
      return ((await response.json()) as { data: unknown[] }).data.length
    }
    await network.saveContacts(phone, [{ number: CARLA, name: 'Primeira' }])
    await until('the first name', async () => (await search('Primeira')) === 1)
    await database.run(REFUSE_CONTACTS[store], service.dataDir)
    const when = { stanza: 'ack', direction: 'in', account: phone, attrs: { class: 'notification' } } as const
    const { rule } = await network.misbehave({ kind: 'rule', rule: { when, do: { delayMs: 0 } } } as never)
    await network.saveContacts(phone, [{ number: ANA, name: 'Segunda' }])
    await until('the new version to be stored', async () => {
      const { rules } = await network.scenario()
      return rules.find(one => one.id === rule)!.fitted > 0
    })
    await service.kill('SIGKILL')
    await database.run(ALLOW_CONTACTS[store], service.dataDir)
    await database.expireLeases()
    await service.start()
    await service.admin.untilState(id, 'connected')
    await until('the second name', async () => (await search('Segunda')) === 1)
    expect(await search('Primeira')).toBe(1)
  })

  test('a kill while the address book is read loses none of its contacts', async () => {
    const { service, network } = harness
    const { id, token } = await service.admin.createInstance('whatsapp')
    const link = async () => {
      await service.admin.connect(id)
      return network.scanQr(await harness.showQr(id), 'phone-with-address-book')
    }
    const { phone } = await link()
    await service.admin.untilState(id, 'connected')
    await service.admin.logout(id)
    await service.admin.untilState(id, 'logged_out')
    const names = Array.from({ length: 20 }, (_, index) => `Salva ${index}`)
    await network.saveContacts(
      phone,
      names.map((name, index) => ({ number: `${5511987680000 + index}`, name })),
    )
    const when = { stanza: 'iq', direction: 'in', attrs: { xmlns: 'w:sync:app:state' } } as const
    const { rule } = await network.misbehave({ kind: 'rule', rule: { when, do: { delayMs: 0 } } } as never)
    await link()
    await until('the address book to be requested', async () => {
      const { rules } = await network.scenario()
      return rules.find(one => one.id === rule)!.fitted > 0
    })
    await harness.kill()
    const list = async () => {
      const response = await fetch(`${service.url}/v1/contacts?search=salva&limit=50`, {
        headers: { authorization: `Bearer ${token}` },
      })
      const { data } = (await response.json()) as { data: { name: string }[] }
      return data.map(({ name }) => name)
    }
    await until('all contacts', async () => (await list()).length === names.length)
    expect((await list()).toSorted()).toEqual(names.toSorted())
  })
})
