// Asks the passkey of a WhatsApp account and shows its answer. It reads nothing else, and sends nothing anywhere.
{
  const { request, instance, words } = ASKED
  const toBytes = text =>
    Uint8Array.from(atob(text.replaceAll('-', '+').replaceAll('_', '/')), one => one.charCodeAt(0))
  const toText = bytes =>
    btoa(String.fromCharCode(...new Uint8Array(bytes)))
      .replaceAll('+', '-')
      .replaceAll('/', '_')
      .replaceAll('=', '')
  const add = (parent, tag, properties) => parent.appendChild(Object.assign(document.createElement(tag), properties))

  const ask = async () => {
    const publicKey = {
      challenge: toBytes(request.challenge),
      rpId: request.rpId,
      userVerification: request.userVerification,
      allowCredentials: request.allowCredentials.map(one => ({ ...one, id: toBytes(one.id) })),
    }
    const { id, rawId, response } = await navigator.credentials.get({ publicKey })
    const { clientDataJSON, authenticatorData, signature, userHandle } = response
    return {
      id,
      rawId: toText(rawId),
      type: 'public-key',
      response: {
        clientDataJSON: toText(clientDataJSON),
        authenticatorData: toText(authenticatorData),
        signature: toText(signature),
        userHandle: userHandle ? toText(userHandle) : null,
      },
    }
  }

  const box = add(document.body, 'dialog', { id: 'pombal-passkey' })
  add(box, 'h2', { textContent: words.title })
  add(box, 'p', { textContent: words.asks }).append(
    ' ',
    Object.assign(document.createElement('b'), { textContent: instance }),
  )
  const note = add(box, 'p', { textContent: words.warning })
  const use = add(box, 'button', { textContent: words.use })
  add(box, 'button', { textContent: words.close, onclick: () => box.remove() })
  use.onclick = async () => {
    try {
      const answer = JSON.stringify(await ask())
      const field = add(box, 'textarea', { value: answer, readOnly: true, rows: 6, cols: 60 })
      use.textContent = words.copy
      use.onclick = async () => {
        field.select()
        await navigator.clipboard.writeText(answer).catch(() => document.execCommand('copy'))
        note.textContent = words.copied
      }
    } catch (error) {
      note.textContent = `${words.failed} (${error.name})`
    }
  }
  if (location.hostname !== 'web.whatsapp.com') {
    note.textContent = words.elsewhere
    use.disabled = true
  }
  box.showModal()
}
