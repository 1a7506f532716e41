/* Reads all events of an OTF2 archive with OTF2's own reader, location by location: read ANCHOR. Prints their number. */
#include <inttypes.h>
#include <otf2/otf2.h>
#include <stdio.h>
#include <stdlib.h>

static uint64_t locations[4096], found, events, sum;

static void check(OTF2_ErrorCode code) {
    if (code != OTF2_SUCCESS)
        exit(1);
}

static OTF2_CallbackCode location(void *data, OTF2_LocationRef self, OTF2_StringRef name, OTF2_LocationType type,
                                  uint64_t number, OTF2_LocationGroupRef group) {
    if (found == sizeof locations / sizeof *locations)
        return OTF2_CALLBACK_INTERRUPT;
    locations[found++] = self;
    return OTF2_CALLBACK_SUCCESS;
}

/* Parameters common to all callbacks, and their minimal body, which uses the timestamp. */
#define EVENT OTF2_LocationRef self, OTF2_TimeStamp time, uint64_t position, void *data, OTF2_AttributeList *attributes
#define COUNT { events++; sum += time; return OTF2_CALLBACK_SUCCESS; }

static OTF2_CallbackCode region(EVENT, OTF2_RegionRef r) COUNT
static OTF2_CallbackCode message(EVENT, uint32_t peer, OTF2_CommRef c, uint32_t tag, uint64_t length) COUNT
static OTF2_CallbackCode request_message(EVENT, uint32_t peer, OTF2_CommRef c, uint32_t tag, uint64_t length, uint64_t r) COUNT
static OTF2_CallbackCode request(EVENT, uint64_t r) COUNT
static OTF2_CallbackCode begin(EVENT) COUNT
static OTF2_CallbackCode end(EVENT, OTF2_CollectiveOp op, OTF2_CommRef c, uint32_t root, uint64_t sent, uint64_t received) COUNT
static OTF2_CallbackCode fork_(EVENT, OTF2_Paradigm model, uint32_t threads) COUNT
static OTF2_CallbackCode join_(EVENT, OTF2_Paradigm model) COUNT
static OTF2_CallbackCode team(EVENT, OTF2_CommRef t) COUNT

int main(int argc, char **argv) {
    OTF2_Reader *reader = argc == 2 ? OTF2_Reader_Open(argv[1]) : NULL;
    if (!reader)
        return 2;
    uint64_t read;
    check(OTF2_Reader_SetSerialCollectiveCallbacks(reader));
    OTF2_GlobalDefReader *definitions = OTF2_Reader_GetGlobalDefReader(reader);
    OTF2_GlobalDefReaderCallbacks *global = OTF2_GlobalDefReaderCallbacks_New();
    OTF2_GlobalDefReaderCallbacks_SetLocationCallback(global, location);
    check(OTF2_Reader_RegisterGlobalDefCallbacks(reader, definitions, global, NULL));
    check(OTF2_Reader_ReadAllGlobalDefinitions(reader, definitions, &read));
    for (uint64_t i = 0; i < found; i++)
        check(OTF2_Reader_SelectLocation(reader, locations[i]));
    check(OTF2_Reader_OpenDefFiles(reader));
    check(OTF2_Reader_OpenEvtFiles(reader));
    OTF2_EvtReaderCallbacks *callbacks = OTF2_EvtReaderCallbacks_New();
    OTF2_EvtReaderCallbacks_SetEnterCallback(callbacks, region);
    OTF2_EvtReaderCallbacks_SetLeaveCallback(callbacks, region);
    OTF2_EvtReaderCallbacks_SetMpiSendCallback(callbacks, message);
    OTF2_EvtReaderCallbacks_SetMpiRecvCallback(callbacks, message);
    OTF2_EvtReaderCallbacks_SetMpiIsendCallback(callbacks, request_message);
    OTF2_EvtReaderCallbacks_SetMpiIrecvCallback(callbacks, request_message);
    OTF2_EvtReaderCallbacks_SetMpiIsendCompleteCallback(callbacks, request);
    OTF2_EvtReaderCallbacks_SetMpiIrecvRequestCallback(callbacks, request);
    OTF2_EvtReaderCallbacks_SetMpiCollectiveBeginCallback(callbacks, begin);
    OTF2_EvtReaderCallbacks_SetMpiCollectiveEndCallback(callbacks, end);
    OTF2_EvtReaderCallbacks_SetThreadForkCallback(callbacks, fork_);
    OTF2_EvtReaderCallbacks_SetThreadJoinCallback(callbacks, join_);
    OTF2_EvtReaderCallbacks_SetThreadTeamBeginCallback(callbacks, team);
    OTF2_EvtReaderCallbacks_SetThreadTeamEndCallback(callbacks, team);
    for (uint64_t i = 0; i < found; i++) {
        OTF2_DefReader *local = OTF2_Reader_GetDefReader(reader, locations[i]);
        if (local) {
            check(OTF2_Reader_ReadAllLocalDefinitions(reader, local, &read));
            check(OTF2_Reader_CloseDefReader(reader, local));
        }
        OTF2_EvtReader *of_location = OTF2_Reader_GetEvtReader(reader, locations[i]);
        check(OTF2_Reader_RegisterEvtCallbacks(reader, of_location, callbacks, NULL));
        check(OTF2_Reader_ReadAllLocalEvents(reader, of_location, &read));
        check(OTF2_Reader_CloseEvtReader(reader, of_location));
    }
    check(OTF2_Reader_Close(reader));
    printf("%" PRIu64 " %" PRIu64 "\n", events, sum);
    return 0;
}
