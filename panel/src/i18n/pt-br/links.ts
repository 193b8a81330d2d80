import type { Words } from '../en.ts'

export const links: Words['links'] = {
  offer: 'O telefone está com outra pessoa?',
  create: 'Criar um link para essa pessoa',
  title: 'Um link para vincular o número',
  text: 'O link abre uma página com o QR code desta instância, e nada mais do Pombal. Funciona em um só navegador, até o número ser vinculado. Não desvincula nem troca um número.',
  heading: 'Nome na página',
  headingHint: 'Como o nome da loja. Opcional.',
  lasts: 'O link funciona por',
  minutes: { 60: '1 hora', 240: '4 horas', 1440: '24 horas' },
  back: 'Endereço de volta',
  backHint: 'Oferecido na página, como o seu site. Opcional.',
  made: 'Envie este link à pessoa que está com o telefone. Ele só aparece uma vez.',
  link: 'Endereço do link',
  list: 'Links entregues',
  ends: 'funciona até',
  ended: 'terminou',
  used: 'O número foi vinculado com ele',
  opened: 'em uso',
  notOpened: 'ainda não usado',
  revoke: 'Revogar',
  revokeLabel: name => `Revogar ${name}`,
  revokeText:
    'O link deixa de funcionar na hora. Se ele estiver mostrando um código, esse código também deixa de funcionar.',
  revoked: 'O link foi revogado.',
  unnamed: 'Link sem nome',
}

export const linkPage: Words['linkPage'] = {
  title: 'Vincule seu número de WhatsApp',
  lead: 'Tenha à mão o telefone com o WhatsApp. Nesta página você o conecta ao serviço que enviou o link. Leva cerca de um minuto.',
  meaning:
    'Depois disso, o serviço pode enviar e ler mensagens com o seu número. Você pode encerrar isso no telefone quando quiser, em Aparelhos conectados.',
  begin: 'Começar',
  connecting: 'O telefone confirmou. Leva alguns segundos…',
  done: 'Seu número está vinculado',
  doneText: 'Você pode fechar esta página. Mantenha o WhatsApp no telefone e não remova este aparelho conectado.',
  back: 'Voltar ao site',
  gone: 'Este link não funciona mais',
  goneText: 'Ele já foi usado, foi revogado ou expirou. Peça um novo a quem o enviou.',
  elsewhere: 'Este link está em uso em outro navegador',
  elsewhereText: 'Continue lá, ou peça um novo a quem o enviou. Este navegador precisa aceitar cookies.',
  askSender: 'Algo está errado do lado do serviço. Avise quem enviou o link.',
}
